//! Costs of a fork: time of `fork(1)` into a sandbox from the pool, and of the first cell in the new session,
//! for sessions with small and large state.
//!
//! `cargo run --release -p cellblock-bench --example fork`, on a quiet machine. As root, pages are
//! distinguished by their physical addresses; for an ordinary user, all pages are compared, which
//! takes longer.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::fork::ForkOptions;
use clap::Parser;
use warmed::{median, timed};

mod warmed;

/// Measures what a fork costs.
#[derive(Debug, Parser)]
struct Args {
    /// Forks of each session
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

/// Contents of the session: a name, and the cell that puts it there.
const STATES: [(&str, &str); 4] = [
    ("a number", "kept = 1"),
    (
        "a small table",
        "import pandas as pd\nframe = pd.DataFrame({'x': range(1000)})\nframe.describe()",
    ),
    (
        "an array of 200 MB",
        "import numpy as np\nheld = np.ones(200_000_000 // 8)",
    ),
    (
        "1,000 files",
        "for n in range(1000): _ = open(f'/workspace/{n}', 'w').write('x' * 4096)",
    ),
];

/// Lets the pool make its next sandbox.
const REST: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let interpreter = warmed::interpreter(1).await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| state | fork: median (min) | first cell in the fork: median (min) |"
    )?;
    writeln!(out, "|---|---|---|")?;
    for (name, code) in STATES {
        let session = interpreter.session(SessionOptions::default());
        timed(&session, code).await?;
        let (mut forks, mut cells) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            tokio::time::sleep(REST).await;
            let started = Instant::now();
            let fork = session.fork(ForkOptions::new(1)).await?.remove(0);
            forks.push(started.elapsed().as_secs_f64() * 1000.0);
            cells.push(timed(&fork, "1 + 1").await?);
            fork.close().await?;
        }
        writeln!(out, "| {name} | {} | {} |", shown(&mut forks), shown(&mut cells))?;
        session.close().await?;
    }
    Ok(())
}

fn shown(times: &mut [f64]) -> String {
    let median = median(times);
    let least = times.first().copied().unwrap_or_default();
    format!("{median:.1} ms ({least:.1})")
}
