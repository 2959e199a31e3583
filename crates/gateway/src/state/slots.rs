//! Executions that may run at a time.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Executions that may run at a time.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    pub(crate) all: usize,
    pub(crate) since: Instant,
}

impl Slots {
    /// So many, all free.
    pub(crate) fn new(all: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(all)),
            all,
            since: Instant::now(),
        }
    }

    /// Returns the number of those that run.
    pub(crate) fn taken(&self) -> usize {
        self.all.saturating_sub(self.free.available_permits())
    }

    /// Takes one, if one is free.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}
