//! The memory of a walled machine, whose kernel has no cgroups: measured at intervals, so that code
//! which takes too much loses its kernel instead of the machine.

use std::fs;

use cellblock_jail::cgroup::Usage;
use rustix::event::Timespec;

/// Time between two measurements. Much less is written to in it than the machine has to spare.
pub(super) const EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Memory of the machine, before and now.
#[derive(Debug)]
pub(super) struct Memory {
    /// The machine's name until it is woken from the snapshot.
    name: String,
    /// Memory of the template.
    before: u64,
    now: u64,
    peak: u64,
    kills: u64,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            name: own_name(),
            before: 0,
            now: 0,
            peak: 0,
            kills: 0,
        }
    }

    /// Measures; returns whether more than the limit was taken since the machine was woken.
    pub(super) fn exceeds(&mut self, limit: u64) -> bool {
        let Some(used) = used() else { return false };
        if own_name() == self.name {
            self.before = used;
            return false;
        }
        self.now = used.saturating_sub(self.before);
        self.peak = self.peak.max(self.now);
        self.now > limit
    }

    /// Counts a kernel that was killed for it.
    pub(super) fn count_kill(&mut self) {
        self.kills += 1;
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            memory_bytes: self.now,
            memory_peak_bytes: self.peak,
            memory_kills: self.kills,
            ..Usage::default()
        }
    }
}

/// Waking renames the machine before it serves anything.
fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn used() -> Option<u64> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns the memory of processes and of files in memory, in bytes: gVisor counts both as anonymous.
fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("AnonPages:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_anonymous_memory_counts() {
        let text =
            "MemTotal:       1000 kB\nMemFree:        600 kB\nCached:          100 kB\nAnonPages:   300 kB\n";
        assert_eq!(parse(text), Some(300 * 1024));
        assert_eq!(parse("MemTotal: 5 kB\n"), None);
    }
}
