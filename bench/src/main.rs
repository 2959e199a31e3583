//! `cargo xtask bench`: measures Cellblock beside its peers, interleaved in one run on one machine.
//!
//! Interleaving matters more than repetition: on a noisy machine only numbers of the same minute
//! may be compared.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use rustix::process::{Resource, getrlimit, setrlimit};

mod driver;
mod floor;
mod gateway;
mod memory;
mod peer;
mod plan;
mod probe;
mod programs;
mod python;
mod results;
mod samples;
mod subject;

use plan::Extent;
use results::{Results, circumstances};
use subject::Subject;

/// Writes the tables and the chart.
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/report.py");

/// Measures Cellblock beside `python -c`, ipykernel, bwrap, runsc and what the kernel allows at best.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    #[command(flatten)]
    extent: Extent,
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
    if !args.render {
        open_many_files()?;
        tokio::runtime::Runtime::new()
            .context("start the runtime")?
            .block_on(measure(&args))?
            .write(&args.output)?;
    }
    let mut report = Command::new("python3");
    report.args(["-B", REPORT, "--results"]).arg(&args.output);
    let status = report.arg("--chart").arg(&args.chart).status();
    // It fails if a turn did: that is in the report; a script should notice too.
    Ok(if status.context("report with `python3`")?.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn measure(args: &Args) -> Result<Results> {
    let started = Instant::now();
    let subject = Subject::start().await?;
    let mut results = Results {
        circumstances: circumstances(&subject.image),
        ..Results::default()
    };
    let (probes, missing) = plan::make(&subject, &args.extent)?;
    (results.samples, results.failures) = probe::run(probes).await;
    results.missing = missing;
    let seconds = started.elapsed().as_secs();
    results.circumstances["seconds"] = seconds.into();
    note(&format!("took {seconds} s"));
    Ok(results)
}

/// Raises the limit of open files: hundreds of sessions have some thousand descriptors, and a login
/// session usually allows a thousand.
fn open_many_files() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raise the limit of open files")
}

/// Prints one line to stderr while a run runs.
#[expect(clippy::print_stderr, reason = "this program is a command for developers")]
fn note(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_passes_its_tests() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
        let mut tests = Command::new("python3");
        tests.args(["-B", "-m", "unittest", "test_report"]);
        let tested = tests.current_dir(folder).output().unwrap();
        assert!(tested.status.success(), "{tested:?}");
    }
}
