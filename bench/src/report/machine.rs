//! Place, time and subject of a run.

use std::process::Command;

use cellblock_image::OpenImage;
use serde::{Deserialize, Serialize};

use crate::peer::PythonLauncher;

/// Facts that a reader needs to compare a run with another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// In UTC.
    pub(crate) date: String,
    /// Duration in seconds.
    pub(crate) seconds: u64,
    pub(crate) command: String,
    /// The commit, with a plus sign if files were changed.
    pub(crate) commit: String,
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    /// The load average when it began: a quiet machine has nearly none.
    pub(crate) load: String,
    pub(crate) image: String,
    pub(crate) python: String,
    pub(crate) bwrap: Option<String>,
    pub(crate) runsc: Option<String>,
}

impl Circumstances {
    pub(crate) fn of(image: &OpenImage) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .unwrap_or_default();
        let memory = read("/proc/meminfo");
        let total = memory
            .split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<u64>().ok());
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
        Self {
            date: said("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"]),
            seconds: 0,
            command: format!("cargo xtask bench {}", arguments.join(" "))
                .trim_end()
                .to_owned(),
            commit: said("git", &["rev-parse", "--short=12", "HEAD"])
                + if changed.is_empty() { "" } else { "+" },
            cpu: model.trim_start_matches([' ', '\t', ':']).to_owned(),
            cpus: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            memory_mib: total.unwrap_or_default() / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
            image: image.id()[..12].to_owned(),
            python: image.manifest().python.clone(),
            bwrap: PythonLauncher::version("bwrap"),
            runsc: PythonLauncher::version("runsc"),
        }
    }
}

/// Returns the output of a program; empty if it cannot be run.
fn said(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
