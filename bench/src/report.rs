//! What a run prints and keeps.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::memory::Memory;
use crate::samples::{Metric, Samples};

/// A promise: a name, the metric, and the most milliseconds at the median.
const PROMISES: [(&str, Metric, f64); 5] = [
    ("create → `1+1`, no pool", Metric::ColdFirstResult, 15.0),
    ("create → `1+1`, from the pool", Metric::PoolFirstResult, 2.0),
    ("warm `1+1`", Metric::Warm, 0.5),
    (
        "a Python loop stopped, after its deadline",
        Metric::StopLoop,
        100.0,
    ),
    (
        "C code that does not listen stopped, after its deadline",
        Metric::StopDeaf,
        1000.0,
    ),
];
/// How many times sooner than ipykernel the first chart is to come.
const CHART_RATIO: f64 = 20.0;
/// Private bytes of an idle session.
const IDLE_BYTES: u64 = 8 * 1024 * 1024;

/// Prints to stderr how far the run is.
pub(crate) fn progress(round: usize, rounds: usize) {
    note(&format!("round {round} of {rounds}"));
}

/// Prints one line to stderr.
#[expect(clippy::print_stderr, reason = "this program is a command for developers")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// Prints the table and keeps the samples.
#[expect(clippy::print_stdout, reason = "this program is a command for developers")]
pub(crate) fn write(samples: &Samples, memory: &Memory, path: &Path) -> Result<()> {
    let show = |metric, quantile| {
        samples
            .quantile(metric, quantile)
            .map_or_else(|| "–".to_owned(), |value| format!("{value:.2} ms"))
    };
    println!("| what | p50 | p99 | promise | kept |\n|---|---|---|---|---|");
    for (name, metric, limit) in PROMISES {
        let kept = samples.quantile(metric, 0.5).is_some_and(|value| value <= limit);
        println!(
            "| {name} | {} | {} | ≤ {limit} ms | {} |",
            show(metric, 0.5),
            show(metric, 0.99),
            word(kept)
        );
    }
    for (name, metric) in [
        ("create → table and chart, no pool", Metric::ColdFirstChart),
        ("create → table and chart, from the pool", Metric::PoolFirstChart),
        ("ipykernel: start → `1+1`", Metric::PeerFirstResult),
        ("ipykernel: start → table and chart", Metric::PeerFirstChart),
        ("ipykernel: warm `1+1`", Metric::PeerWarm),
    ] {
        println!("| {name} | {} | {} | | |", show(metric, 0.5), show(metric, 0.99));
    }
    for (name, metric) in [
        ("no pool", Metric::ColdFirstChart),
        ("from the pool", Metric::PoolFirstChart),
    ] {
        if let (Some(ours), Some(theirs)) = (
            samples.quantile(metric, 0.5),
            samples.quantile(Metric::PeerFirstChart, 0.5),
        ) {
            let ratio = theirs / ours;
            println!(
                "| first chart, {name}: times sooner than ipykernel | {ratio:.1}× | | ≥ {CHART_RATIO}× | {} |",
                word(ratio >= CHART_RATIO)
            );
        }
    }
    println!(
        "| private memory of an idle session | {} KiB | | ≤ {} KiB | {} |",
        memory.private_bytes / 1024,
        IDLE_BYTES / 1024,
        word(memory.private_bytes <= IDLE_BYTES)
    );
    let kept = json!({"machine": machine(), "samples_ms": samples, "idle_session": memory});
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).context("make the directory of results")?;
    }
    std::fs::write(path, serde_json::to_string(&kept)?).context("keep the samples")
}

const fn word(kept: bool) -> &'static str {
    if kept { "yes" } else { "NO" }
}

fn machine() -> serde_json::Value {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    json!({
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "cpu": model.trim_start_matches([' ', '\t', ':']),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "unix_time": std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs(),
    })
}
