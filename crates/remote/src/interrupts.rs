//! Interrupts on their way to a kernel: the numbers of requested and of forwarded ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum time to wait until an interrupt is forwarded. If no task does that any more, the kernel
/// is unreachable as well.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Interrupts {
    asked: AtomicU64,
    passed: watch::Sender<u64>,
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            passed: watch::channel(0).0,
        }
    }
}

impl Interrupts {
    /// Requests an interrupt.
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the total number if some are not forwarded yet. One interrupt covers all of them.
    pub(super) fn waiting(&self) -> Option<u64> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked > *self.passed.borrow()).then_some(asked)
    }

    /// Records that this many have been forwarded.
    pub(super) fn passed(&self, number: u64) {
        self.passed.send_replace(number);
    }

    /// Completes when all interrupts that were requested until now have been forwarded.
    pub(super) async fn settled(&self) {
        let asked = self.asked.load(Ordering::Acquire);
        let mut passed = self.passed.subscribe();
        let _ = timeout(PATIENCE, passed.wait_for(|passed| *passed >= asked)).await;
    }
}
