//! The machine's memory, as far as containers depend on it.

use std::fs;

/// Memory that a sandbox has after it has drawn a chart from a table, and some more.
const SANDBOX: u64 = 32 << 20;
/// Memory that idle containers leave to others, in parts of the machine's.
const LEFT: u64 = 10;
/// The same on a machine that has much.
const MOST_LEFT: u64 = 1 << 30;

/// Returns the memory of the machine.
pub(crate) fn total() -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Returns the maximum number of sandboxes at a time: as many as take an eighth of the memory.
pub(crate) fn sandboxes() -> usize {
    let fit = total().map_or(0, |total| total / 8 / SANDBOX);
    usize::try_from(fit).unwrap_or(usize::MAX).clamp(16, 512)
}

/// Whether so little is left that idle sandboxes should go.
pub(crate) fn is_scarce() -> bool {
    fs::read_to_string("/proc/meminfo").is_ok_and(|told| scarce(&told))
}

fn scarce(told: &str) -> bool {
    let (Some(total), Some(available)) = (field(told, "MemTotal:"), field(told, "MemAvailable:")) else {
        return false;
    };
    available < (total / LEFT).min(MOST_LEFT)
}

fn field(told: &str, name: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_scarce_when_a_tenth_is_left_or_less_than_a_gibibyte_of_much() {
        let told = |total: u64, available: u64| {
            format!("MemTotal:       {total} kB\nMemFree:        1 kB\nMemAvailable:   {available} kB\n")
        };
        assert!(scarce(&told(4_000_000, 399_999)));
        assert!(!scarce(&told(4_000_000, 400_000)));
        assert!(scarce(&told(64 << 20, (1 << 20) - 1)));
        assert!(!scarce(&told(64 << 20, 1 << 20)));
        assert!(!scarce("nothing of the kind"));
    }

    #[test]
    fn this_machine_has_memory_for_sandboxes() {
        assert!(total().is_some_and(|total| total > 1 << 26));
        assert!((16..=512).contains(&sandboxes()));
    }
}
