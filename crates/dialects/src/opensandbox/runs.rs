//! Programs that run in a sandbox and can be interrupted by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use cellblock_interpreter::mint;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::sandbox::lock;

/// The runs of a sandbox by their ids. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Arc<Mutex<HashMap<String, CancellationToken>>>);

/// A run. It is listed until this is dropped.
#[derive(Debug)]
pub(super) struct RunGuard {
    pub(super) id: String,
    /// Canceled by an interrupt.
    pub(super) stop: CancellationToken,
    runs: Runs,
}

impl Runs {
    pub(super) fn begin(&self) -> RunGuard {
        let (id, stop) = (mint(""), CancellationToken::new());
        lock(&self.0).insert(id.clone(), stop.clone());
        RunGuard {
            id,
            stop,
            runs: self.clone(),
        }
    }

    /// Interrupts a run; says whether there is one.
    pub(super) fn interrupt(&self, id: &str) -> bool {
        let runs = lock(&self.0);
        let found = runs.get(id);
        found.inspect(|stop| stop.cancel()).is_some()
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        lock(&self.runs.0).remove(&self.id);
    }
}
