//! Costs of a standby with each policy: time of `1+1` right after the cell before and after a pause, CPU
//! time of a cell with all that it entails, and memory of an idle session.

use std::time::Duration;

use anyhow::{Context, Result};
use cellblock_interpreter::cell::Rescue;
use tokio::time::sleep;

use super::live::memory;
use super::{Subject, run};
use crate::memory::{cpu_time, kernels};
use crate::programs::SUM;
use crate::samples::ProbeTurn;

const POLICIES: [(&str, Rescue); 3] = [("on", Rescue::On), ("idle", Rescue::Idle), ("off", Rescue::Off)];
const PAUSE: Duration = Duration::from_millis(50);

/// Measures a session with some content for each policy.
pub(crate) async fn standby(subject: &Subject, turn: &ProbeTurn, (held, code): (&str, &str)) -> Result<()> {
    for (policy, rescue) in POLICIES {
        let series = |what: &str| format!("standby_{held}_{policy}_{what}");
        subject.settle().await?;
        let others = kernels()?;
        let session = subject.session_with(false, |options| options.rescue = rescue);
        // The standby is another process, which has run less: with forks, and the pages that the
        // kernel copies after them.
        let cpu = || {
            let ours = kernels()?.into_iter().filter(|pid| !others.contains(pid));
            let busiest = ours.filter_map(cpu_time).max_by(f64::total_cmp);
            busiest.context("no process could be measured; run as root")
        };
        run(&session, code).await?;
        run(&session, SUM).await?;
        let before = cpu()?;
        for (what, pause, cells) in [("at_once", Duration::ZERO, 50), ("spaced", PAUSE, 20)] {
            for _ in 0..cells {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                turn.time(&series(what), run(&session, SUM).await?.1);
            }
        }
        sleep(10 * PAUSE).await;
        // For each of these 70 cells.
        turn.add(&series("cpu"), (cpu()? - before) / 70.0);
        let used = memory(&session).await?;
        let used = used.context("no cgroup counts memory; run as root")?;
        turn.add(&series("memory"), used);
        session.close().await?;
    }
    Ok(())
}
