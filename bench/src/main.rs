//! `cargo xtask bench`: measures Cellblock beside its peers, interleaved in one run on one machine.
//!
//! Interleaving matters more than repetition: on a noisy machine only numbers of the same minute may be compared.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

mod cellblock;
mod memory;
mod peer;
mod report;
mod samples;

use cellblock::Subject;
use peer::Peer;
use samples::{Metric, Samples};

/// Measures Cellblock beside ipykernel.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds of every start measurement
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Warm cells per round
    #[arg(long, default_value_t = 50)]
    warm: usize,
    /// Idle sessions whose memory is measured
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Leaves out ipykernel
    #[arg(long)]
    alone: bool,
    /// Where the samples are written
    #[arg(long, default_value = "bench/results/latest.json")]
    output: PathBuf,
}

/// The first analysis of a session: a table's summary and a chart as PNG.
const CHART: &str = "\
import pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({'x': range(1000), 'y': [v ** 0.5 for v in range(1000)]})
display(frame.describe())
frame.plot(x='x', y='y')
plt.show()
";

/// C code that is never interrupted: the signal is blocked.
const DEAF: &str = "\
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
time.sleep(100)
";

fn main() -> Result<()> {
    cellblock_interpreter::boot();
    let args = Args::parse();
    tokio::runtime::Runtime::new()
        .context("start the runtime")?
        .block_on(run(&args))
}

async fn run(args: &Args) -> Result<()> {
    let subject = Subject::start().await?;
    let mut peer = if args.alone {
        None
    } else {
        Some(Peer::start(&subject)?)
    };
    let mut samples = Samples::default();
    for round in 0..args.rounds {
        report::progress(round + 1, args.rounds);
        samples.add(Metric::ColdFirstResult, subject.first_result(false, "1+1").await?);
        subject.refill().await;
        samples.add(Metric::PoolFirstResult, subject.first_result(true, "1+1").await?);
        samples.add(Metric::ColdFirstChart, subject.first_result(false, CHART).await?);
        subject.refill().await;
        samples.add(Metric::PoolFirstChart, subject.first_result(true, CHART).await?);
        samples.extend(Metric::Warm, subject.warm(args.warm).await?);
        samples.add(Metric::StopLoop, subject.stop("while True: pass").await?);
        samples.add(Metric::StopDeaf, subject.stop(DEAF).await?);
        if let Some(peer) = &mut peer {
            samples.add(Metric::PeerFirstResult, peer.first_result("1+1")?);
            samples.add(Metric::PeerFirstChart, peer.first_result(CHART)?);
            samples.extend(Metric::PeerWarm, peer.warm(args.warm)?);
        }
    }
    let memory = subject.idle_memory(args.sessions).await?;
    report::write(&samples, &memory, &args.output)
}
