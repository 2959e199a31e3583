//! What a fork costs: time of `fork(1)` into a sandbox from the pool, and of the first cell in the new session, for sessions with small
//! and large state.
//!
//! `cargo run --release -p cellblock-bench --example fork`, on a quiet machine. As root, pages are distinguished by their physical addresses;
//! for an ordinary user, all pages are compared, which takes longer.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, Sink};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::{Interpreter, Session};
use clap::Parser;

/// Measures what a fork costs.
#[derive(Debug, Parser)]
struct Args {
    /// Forks of each session
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

/// What is in the session: a name, and the cell that puts it there.
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

fn main() -> Result<()> {
    let args = Args::parse();
    tokio::runtime::Runtime::new()
        .context("start the runtime")?
        .block_on(run(&args))
}

async fn run(args: &Args) -> Result<()> {
    let images = cellblock_image::ImageStore::find()?;
    let image = images.open(DEFAULT_IMAGE, Sink::silent()).await?;
    let store = Store::local(images.home().root().join("bench-artifacts"))?;
    let interpreter = Interpreter::builder()
        .image(image)
        .pool(1)
        .store(store)
        .build()
        .await?;
    interpreter.warmed().await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| state | fork: median (min) | first cell in the fork: median (min) |"
    )?;
    writeln!(out, "|---|---|---|")?;
    for (name, code) in STATES {
        let session = interpreter.session(SessionOptions::default());
        cell(&session, code).await?;
        let (mut forks, mut cells) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            tokio::time::sleep(REST).await;
            let started = Instant::now();
            let fork = session.fork(ForkOptions::new(1)).await?.remove(0);
            forks.push(started.elapsed());
            let started = Instant::now();
            cell(&fork, "1 + 1").await?;
            cells.push(started.elapsed());
            fork.close().await?;
        }
        writeln!(out, "| {name} | {} | {} |", shown(&mut forks), shown(&mut cells))?;
        session.close().await?;
    }
    Ok(())
}

async fn cell(session: &Session, code: &str) -> Result<()> {
    let ended = session.execute(code).await?;
    ensure!(ended.outcome == Outcome::Completed, "{ended:?}");
    Ok(())
}

fn shown(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let (Some(least), Some(median)) = (times.first(), times.get(times.len() / 2)) else {
        return "none".to_owned();
    };
    format!("{:.1} ms ({:.1})", ms(median), ms(least))
}
