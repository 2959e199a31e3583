//! `cargo xtask bench`: measures Cellblock beside its peers, interleaved in one run on one machine.
//!
//! Interleaving matters more than repetition: on a noisy machine only numbers of the same minute
//! may be compared.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod catalog;
mod driver;
mod floor;
mod gateway;
mod memory;
mod peer;
mod plan;
mod probe;
mod programs;
mod progress;
mod python;
mod report;
mod samples;
mod subject;

use plan::{Extent, Group};
use progress::note;
use report::machine::Circumstances;
use report::results::Results;
use report::{chart, table};
use samples::Samples;
use subject::Subject;

/// Measures Cellblock beside `python -c`, ipykernel, bwrap, runsc and what the kernel allows at best.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    /// A few turns of everything, to see that it works
    #[arg(long)]
    quick: bool,
    /// Only these, by name
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<Group>,
    /// Leaves out peers and floors
    #[arg(long)]
    alone: bool,
    /// Measures nothing: writes the table and the chart of the results that are there
    #[arg(long)]
    render: bool,
    /// File of the samples
    #[arg(long, default_value = "bench/results/latest.json")]
    output: PathBuf,
    /// File of the chart
    #[arg(long, default_value = "docs/bench.svg")]
    chart: PathBuf,
}

fn main() -> Result<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(floor::ROLE) {
        return floor::serve_namespaces().map(|()| ExitCode::SUCCESS);
    }
    let args = Args::parse();
    let results = if args.render {
        Results::read(&args.output)?
    } else {
        open_many_files()?;
        let results = tokio::runtime::Runtime::new()
            .context("start the runtime")?
            .block_on(measure(&args))?;
        results.write(&args.output)?;
        results
    };
    show(&results);
    std::fs::write(&args.chart, chart::svg(&results.samples))
        .with_context(|| format!("draw `{}`", args.chart.display()))?;
    // They are told in the report; a script should notice too.
    Ok(if results.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn measure(args: &Args) -> Result<Results> {
    let started = Instant::now();
    let subject = Subject::start().await?;
    let mut results = Results {
        circumstances: Circumstances::of(&subject.image),
        ..Results::default()
    };
    let extent = Extent {
        quick: args.quick,
        only: &args.only,
        alone: args.alone,
    };
    let (plans, missing) = plan::make(&subject, extent)?;
    let mut samples = Samples::default();
    results.failures = probe::run(plans, &mut samples).await;
    results.missing = missing;
    results.samples = samples;
    results.circumstances.seconds = started.elapsed().as_secs();
    note(&format!("took {} s", results.circumstances.seconds));
    Ok(results)
}

/// Raises the limit of open files: hundreds of sessions have some thousand descriptors, and a login
/// session usually allows a thousand.
fn open_many_files() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("raise the limit of open files")
}

#[expect(clippy::print_stdout, reason = "this program is a command for developers")]
fn show(results: &Results) {
    println!("{}", table::markdown(results));
}
