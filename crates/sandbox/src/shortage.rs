//! Shortages: the resource that a machine lacks for another sandbox.

use std::fmt;
use std::fs;

/// Memory in bytes below which a machine has too little for another sandbox.
const LITTLE: u64 = 256 << 20;

/// A shortage. Its text says what helps, and nothing about the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The image's libraries are still being imported.
    Import,
    /// Memory.
    Memory,
    /// Places for sandboxes.
    Places,
    /// Processes that the user or the cgroup may have.
    Processes,
    /// Processors.
    Processors,
}

impl Shortage {
    /// Returns what is short now if a sandbox was not ready in time.
    pub(crate) fn now() -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        match available(&meminfo) {
            Some(bytes) if bytes < LITTLE => Self::Memory,
            _ => Self::Processors,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Import => {
                "the image is still being imported; try again in a while, nothing has to be closed"
            }
            Self::Memory => "the machine has too little memory; close sessions that are not needed",
            Self::Places => "all places for sandboxes are in use; close sessions that are not needed",
            Self::Processes => "no more processes are allowed; close sessions that are not needed",
            Self::Processors => {
                "the processors are busy; try again in a while, or run fewer cells at the same time"
            }
        })
    }
}

/// Reads the available memory in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_kernel_s_table() {
        let table = "MemTotal:       16384000 kB\nMemAvailable:     204800 kB\n";
        assert_eq!(available(table), Some(200 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }
}
