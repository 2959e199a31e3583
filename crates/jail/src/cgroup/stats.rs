//! Resource usage of a group, and how often it reached a limit.

use std::io::Read;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use super::Version;

/// Resource usage of a room since its creation. Zero if the machine does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Current memory in bytes.
    pub memory_bytes: u64,
    /// Peak memory in bytes.
    pub memory_peak_bytes: u64,
    /// Processes that the kernel killed because memory was exhausted.
    pub memory_kills: u64,
    /// Number of times that the limit on memory was reached, whatever helped then: freeing cached files, or a
    /// kill.
    #[serde(default)]
    pub memory_refusals: u64,
    /// Current number of processes and threads.
    pub processes: u64,
    /// Forks that failed at the process limit.
    pub process_refusals: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
}

impl Usage {
    pub(super) fn read<'a>(dirs: impl Iterator<Item = (Version, BorrowedFd<'a>)>) -> Self {
        let mut usage = Self::default();
        for (version, dir) in dirs {
            match version {
                Version::V2 => usage.read_v2(dir),
                Version::V1 => usage.read_v1(dir),
            }
        }
        usage
    }

    fn read_v2(&mut self, dir: BorrowedFd<'_>) {
        self.memory_bytes = number(dir, "memory.current");
        self.memory_peak_bytes = number(dir, "memory.peak");
        self.memory_kills = field(dir, "memory.events", "oom_kill");
        self.memory_refusals = field(dir, "memory.events", "max");
        self.processes = number(dir, "pids.current");
        self.process_refusals = field(dir, "pids.events", "max");
        self.cpu_ns = field(dir, "cpu.stat", "usage_usec") * 1000;
    }

    fn read_v1(&mut self, dir: BorrowedFd<'_>) {
        let or = |value: u64, file: &str| if value == 0 { number(dir, file) } else { value };
        self.memory_bytes = or(self.memory_bytes, "memory.usage_in_bytes");
        self.memory_peak_bytes = or(self.memory_peak_bytes, "memory.max_usage_in_bytes");
        self.processes = or(self.processes, "pids.current");
        self.cpu_ns = or(self.cpu_ns, "cpuacct.usage");
        self.memory_kills += field(dir, "memory.oom_control", "oom_kill");
        self.memory_refusals = or(self.memory_refusals, "memory.failcnt");
        // Some kernels do not count it, and all note the peak.
        let limit = number(dir, "memory.limit_in_bytes");
        if limit > 0 && self.memory_peak_bytes >= limit {
            self.memory_refusals = self.memory_refusals.max(1);
        }
        self.process_refusals += field(dir, "pids.events", "max");
    }
}

fn text(dir: BorrowedFd<'_>, file: &str) -> String {
    let mut text = String::new();
    if let Ok(fd) = openat(dir, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = std::fs::File::from(fd).read_to_string(&mut text);
    }
    text
}

fn number(dir: BorrowedFd<'_>, file: &str) -> u64 {
    text(dir, file).trim().parse().unwrap_or(0)
}

fn field(dir: BorrowedFd<'_>, file: &str, name: &str) -> u64 {
    text(dir, file)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}
