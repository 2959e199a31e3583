//! Lines of a log that anybody can cause, at most one a second.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lets one through in each second, and counts the others.
#[derive(Debug)]
pub(super) struct Throttle {
    second: AtomicU64,
    held: AtomicU64,
}

impl Throttle {
    pub(super) const fn new() -> Self {
        Self {
            second: AtomicU64::new(0),
            held: AtomicU64::new(0),
        }
    }

    /// Whether this one goes through, and how many did not since the last one that did.
    pub(super) fn pass(&self) -> Option<u64> {
        self.pass_at(crate::now())
    }

    fn pass_at(&self, now: u64) -> Option<u64> {
        if self.second.swap(now, Ordering::Relaxed) == now {
            self.held.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.held.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_per_second_passes_and_counts_the_others() {
        let throttle = Throttle::new();
        assert_eq!(throttle.pass_at(7), Some(0));
        assert_eq!(throttle.pass_at(7), None);
        assert_eq!(throttle.pass_at(7), None);
        assert_eq!(throttle.pass_at(8), Some(2));
        assert_eq!(throttle.pass_at(9), Some(0));
    }
}
