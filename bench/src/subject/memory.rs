//! Memory of sessions that wait, and of the host's program while a cell floods its stdout.

use std::time::Duration;

use anyhow::{Result, ensure};
use cellblock_interpreter::Session;
use cellblock_interpreter::execution::{Outcome, Resource};
use cellblock_interpreter::limits::Limits;

use super::{Subject, run};
use crate::memory::{Peak, ProcessTree, available, mebibytes};
use crate::programs::{FLOOD, SUM};
use crate::samples::ProbeTurn;

/// After a minute, sessions give up what only makes the next cell safe or fast.
const REST: Duration = Duration::from_secs(70);
const GIB: u64 = 1 << 30;

/// Opens sessions, as many as each of these numbers says in all, lets each run a cell, and measures.
pub(crate) async fn idle(subject: &Subject, turn: &ProbeTurn, counts: [u32; 2]) -> Result<()> {
    let work = async |live: &mut Vec<Session>| {
        let (before, free) = (ProcessTree::measure()?.sessions, available()?);
        let used = || anyhow::Ok(mebibytes(free.saturating_sub(available()?)));
        for count in counts {
            while live.len() < usize::try_from(count)? {
                let session = subject.session(false);
                live.push(session.clone());
                run(&session, SUM).await?;
            }
            let now = ProcessTree::measure()?;
            let used = used()?;
            let private = mebibytes(now.sessions.private.saturating_sub(before.private));
            let proportional = mebibytes(now.sessions.proportional.saturating_sub(before.proportional));
            let kibibytes_of_each = |mebibytes: f64| mebibytes * 1024.0 / f64::from(count);
            // Sharing spreads the template's pages over everyone, so only the sum of all tells what there is.
            let whole = now.sessions.proportional + now.template.proportional + now.launcher.proportional;
            for (what, value) in [
                ("idle_uss", kibibytes_of_each(private)),
                ("idle_pss", kibibytes_of_each(proportional)),
                ("total_uss", private),
                ("total_pss", mebibytes(whole)),
                ("total_used", used),
                ("template_pss", mebibytes(now.template.proportional)),
                ("template_uss", mebibytes(now.template.private)),
                ("launcher_pss", mebibytes(now.launcher.proportional)),
            ] {
                turn.add(&format!("{what}_{count}"), value);
            }
        }
        tokio::time::sleep(REST).await;
        turn.add("rested_used", used()?);
        Ok(())
    };
    subject.with_sessions(work).await
}

/// Floods until the default limit ends the cell, or a gibibyte with the limit raised.
pub(crate) async fn flood(subject: &Subject, turn: &ProbeTurn, raised: bool) -> Result<()> {
    let limits = raised.then(|| Limits {
        stream_bytes: 2 * GIB,
        ..Limits::default()
    });
    let session = subject.session_with(false, |options| options.limits = limits);
    run(&session, SUM).await?;
    let peak = Peak::of(std::process::id())?;
    let execution = session.execute(FLOOD.replace("TIMES", "1024")).await?;
    let growth = peak.growth()?;
    let as_expected = match &execution.outcome {
        Outcome::Completed => raised && execution.stdout.bytes == GIB,
        Outcome::LimitExceeded(limit) => !raised && limit.which == Resource::OutputBytes,
        _ => false,
    };
    ensure!(
        as_expected,
        "a flood ended as {} after {} bytes",
        execution.outcome.name(),
        execution.stdout.bytes
    );
    turn.add(turn.what, growth);
    Ok(session.close().await?)
}
