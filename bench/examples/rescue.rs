//! Costs of a standby: time of `1+1` right after the cell before and after a pause, CPU time of a cell with
//! all that it entails, and memory of an idle session; with each policy.
//!
//! `cargo run --release -p cellblock-bench --example rescue`, as root and on a quiet machine. On
//! and off are interleaved round by round.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use cellblock_interpreter::Session;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::session::SessionOptions;
use clap::Parser;
use warmed::{median, timed};

mod warmed;

/// Measures what rescue costs.
#[derive(Debug, Parser)]
struct Args {
    /// Sessions of each kind
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Cells per session that follow each other at once
    #[arg(long, default_value_t = 50)]
    cells: usize,
    /// Cells per session that follow a pause
    #[arg(long, default_value_t = 20)]
    spaced: usize,
    /// The pause, in milliseconds
    #[arg(long, default_value_t = 50)]
    pause: u64,
}

/// Contents of the session: a name, and the cell that puts it there.
const STATES: [(&str, &str); 4] = [
    ("a number", "kept = 1"),
    (
        "a small table",
        "import pandas as pd\nframe = pd.DataFrame({'x': range(1000)})\nframe.describe()",
    ),
    (
        "an array of 500 MB",
        "import numpy as np\nheld = np.ones(500_000_000 // 8)",
    ),
    (
        "500 MB of small objects",
        "held = [float(n) for n in range(16_000_000)]",
    ),
];

/// In the order of the table.
const POLICIES: [Rescue; 3] = [Rescue::On, Rescue::Idle, Rescue::Off];

#[derive(Debug)]
struct Samples {
    at_once: Vec<f64>,
    spaced: Vec<f64>,
    cpu: Vec<f64>,
    memory: Vec<f64>,
}

impl Samples {
    const fn new() -> Self {
        Self {
            at_once: Vec::new(),
            spaced: Vec::new(),
            cpu: Vec::new(),
            memory: Vec::new(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let interpreter = warmed::interpreter(0).await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| state | rescue | `1+1` at once | `1+1` after a pause | the kernel's CPU time per cell | memory \
         of the session |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (name, code) in STATES {
        let mut found = [const { Samples::new() }; 3];
        for _ in 0..args.rounds {
            for (samples, rescue) in found.iter_mut().zip(POLICIES) {
                let session = interpreter.session(SessionOptions {
                    pooled: false,
                    rescue,
                    ..SessionOptions::default()
                });
                measure(&session, code, &args, samples).await?;
                session.close().await?;
            }
        }
        for (samples, rescue) in found.iter_mut().zip(["on", "idle", "off"]) {
            writeln!(
                out,
                "| {name} | {rescue} | {:.2} ms | {:.2} ms | {:.2} ms | {:.1} MiB |",
                median(&mut samples.at_once),
                median(&mut samples.spaced),
                median(&mut samples.cpu),
                median(&mut samples.memory),
            )?;
        }
    }
    Ok(())
}

async fn measure(session: &Session, code: &str, args: &Args, samples: &mut Samples) -> Result<()> {
    timed(session, code).await?;
    timed(session, "1+1").await?;
    let before = usage()?;
    for _ in 0..args.cells {
        samples.at_once.push(timed(session, "1+1").await?);
    }
    for _ in 0..args.spaced {
        tokio::time::sleep(Duration::from_millis(args.pause)).await;
        samples.spaced.push(timed(session, "1+1").await?);
    }
    tokio::time::sleep(Duration::from_millis(10 * args.pause)).await;
    let after = usage()?;
    #[expect(clippy::cast_precision_loss, reason = "some tens of cells")]
    let cells = (args.cells + args.spaced) as f64;
    samples.cpu.push((after.cpu_ms - before.cpu_ms) / cells);
    samples.memory.push(after.memory_mib);
    Ok(())
}

/// Counters of the session's cgroups.
#[derive(Clone, Copy, Debug)]
struct Usage {
    cpu_ms: f64,
    memory_mib: f64,
}

/// Of the one session that is there: with everything that its processes share, and their page tables.
fn usage() -> Result<Usage> {
    let own = std::process::id();
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").context("list processes")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        let parent = parent.and_then(|parent| parent.trim().parse::<u32>().ok());
        parents.insert(
            pid,
            (parent.unwrap_or(0), status.starts_with("Name:\tcellblock-py\n")),
        );
    }
    let is_ours = |mut pid: u32| {
        while let Some((parent, _)) = parents.get(&pid) {
            if pid == own {
                return true;
            }
            pid = *parent;
        }
        false
    };
    let kernel = parents
        .iter()
        .find(|(pid, (_, kernel))| *kernel && is_ours(**pid));
    let (kernel, _) = kernel.context("no kernel runs")?;
    let groups = fs::read_to_string(format!("/proc/{kernel}/cgroup")).context("read the kernel's cgroups")?;
    let file = |controller: &str, file: &str| -> Option<String> {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            if !controllers.split(',').any(|name| name == controller) {
                return None;
            }
            fs::read_to_string(format!("/sys/fs/cgroup/{controllers}{path}/{file}")).ok()
        })
    };
    let number = |text: Option<String>| text.and_then(|text| text.trim().parse::<f64>().ok());
    let memory =
        number(file("memory", "memory.usage_in_bytes")).or_else(|| number(file("", "memory.current")));
    // Of the kernel's process, the standby being another: forks, and the pages that it copies after them.
    let kernels = parents
        .iter()
        .filter(|(pid, (_, kernel))| *kernel && is_ours(**pid));
    let busiest = kernels.filter_map(|(pid, _)| cpu_of(*pid)).max_by(f64::total_cmp);
    Ok(Usage {
        cpu_ms: busiest.context("no process could be measured; run as root")?,
        memory_mib: memory.context("no cgroup counts memory; run as root")? / (1024.0 * 1024.0),
    })
}

/// Milliseconds that a process has run.
fn cpu_of(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds: f64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}
