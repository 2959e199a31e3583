//! Private memory of sandboxes, from the kernel's own accounting.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

/// Names of processes inside sandboxes: the guest and the Python kernel.
const NAMES: [&str; 2] = ["cellblock-guest", "cellblock-py"];

/// Memory of all sandboxes together, or of one on average.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Memory {
    /// Bytes that nothing else shares (USS).
    pub(crate) private_bytes: u64,
    /// Bytes with shared pages counted in proportion (PSS).
    pub(crate) proportional_bytes: u64,
    /// How many processes.
    pub(crate) processes: u64,
}

impl Memory {
    /// The growth since an earlier measurement, per session.
    pub(crate) fn since(self, before: Self, sessions: u64) -> Self {
        Self {
            private_bytes: self.private_bytes.saturating_sub(before.private_bytes) / sessions,
            proportional_bytes: self.proportional_bytes.saturating_sub(before.proportional_bytes) / sessions,
            processes: self.processes.saturating_sub(before.processes) / sessions,
        }
    }
}

/// Adds up all sandbox processes of this machine. Needs root: guests hide their memory maps from others.
pub(crate) fn measure() -> Result<Memory> {
    let mut memory = Memory::default();
    for entry in fs::read_dir("/proc").context("list processes")?.flatten() {
        let path = entry.path();
        let Ok(name) = fs::read_to_string(path.join("comm")) else {
            continue;
        };
        if !NAMES.contains(&name.trim()) {
            continue;
        }
        let Ok(rollup) = fs::read_to_string(path.join("smaps_rollup")) else {
            continue;
        };
        let field = |name: &str| -> u64 {
            rollup
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok())
                .unwrap_or(0)
                * 1024
        };
        memory.private_bytes += field("Private_Clean:") + field("Private_Dirty:");
        memory.proportional_bytes += field("Pss:");
        memory.processes += 1;
    }
    ensure!(
        memory.processes > 0,
        "no sandbox process could be measured; run as root"
    );
    Ok(memory)
}
