//! Interrupts on their way to a kernel: how many were asked for, and how many have been passed on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long is waited for one to be passed on. Where nobody does that any more, there is no kernel to be reached either.
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
    /// Asks for one.
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// How many there are in all, if some of them have to be passed on. One stands for all.
    pub(super) fn waiting(&self) -> Option<u64> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked > *self.passed.borrow()).then_some(asked)
    }

    /// These have been passed on.
    pub(super) fn passed(&self, number: u64) {
        self.passed.send_replace(number);
    }

    /// Completes when all that were asked for until now have been passed on.
    pub(super) async fn settled(&self) {
        let asked = self.asked.load(Ordering::Acquire);
        let mut passed = self.passed.subscribe();
        let _ = timeout(PATIENCE, passed.wait_for(|passed| *passed >= asked)).await;
    }
}
