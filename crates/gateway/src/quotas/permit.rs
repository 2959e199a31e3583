//! Permits: places that somebody has, given back when they are dropped.

use std::time::{Duration, Instant};

use super::Quotas;
use crate::records::places::PlaceKind;
use crate::records::usage::DailyUsage;

/// Leave to run one cell or command. When it is dropped its place is free, and the time that it
/// took is counted.
#[derive(Debug)]
#[must_use = "the cell's place is free when this is dropped"]
pub struct CellPermit {
    quotas: Quotas,
    owner: String,
    since: Instant,
    took: Option<Duration>,
    is_withdrawn: bool,
}

impl CellPermit {
    pub(super) fn new(quotas: Quotas, owner: String) -> Self {
        Self {
            quotas,
            owner,
            since: Instant::now(),
            took: None,
            is_withdrawn: false,
        }
    }

    /// Another quota has no room for the cell, which does not begin. Nobody is woken for the place:
    /// nobody may have waited for it.
    pub(super) fn withdraw(mut self) {
        self.is_withdrawn = true;
    }

    /// The cell begins only now: what it waited does not count.
    pub(crate) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Time that the finished part took. Its place is still held, and no more time is counted.
    pub(crate) fn stop(&mut self, took: Duration) {
        self.took = Some(took);
    }

    /// The cell has ended, and ran for so long.
    pub fn done(mut self, took: Duration) {
        self.took = Some(took);
    }
}

impl Drop for CellPermit {
    fn drop(&mut self) {
        if self.is_withdrawn {
            *self
                .quotas
                .ledger()
                .account(&self.owner)
                .at_once(PlaceKind::Cells) -= 1;
            return self.quotas.leave(&self.owner, PlaceKind::Cells);
        }
        let took = self.took.unwrap_or_else(|| self.since.elapsed());
        let cell_millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.quotas.give_back(&self.owner, |account| {
            account.free(PlaceKind::Cells);
            account.add(DailyUsage {
                cell_millis,
                ..DailyUsage::default()
            });
        });
        self.quotas.leave(&self.owner, PlaceKind::Cells);
    }
}

/// Leave to have a session or a container. When it is dropped its place is free.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub struct SandboxPermit {
    quotas: Quotas,
    owner: String,
}

impl SandboxPermit {
    pub(super) const fn new(quotas: Quotas, owner: String) -> Self {
        Self { quotas, owner }
    }
}

impl Drop for SandboxPermit {
    fn drop(&mut self) {
        self.quotas.give_back(&self.owner, |account| {
            account.free(PlaceKind::Sandboxes);
        });
        self.quotas.leave(&self.owner, PlaceKind::Sandboxes);
    }
}
