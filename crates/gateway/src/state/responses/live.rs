//! State that responses share while the process lives: those that run in the background, and the key of what
//! is sealed.

use std::collections::HashMap;
use std::sync::Arc;

use cellblock_agent::wire::{ApiError, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::seal::Seal;
use super::suspended::SuspendedTurns;
use super::unwritten::UnwrittenEnds;
use crate::options::ResponseOptions;

/// State that responses share while the process lives.
#[derive(Debug)]
pub(crate) struct LiveResponses {
    running: Mutex<HashMap<String, RunningResponse>>,
    most: usize,
    /// A place for each background response that runs at once.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) seal: OnceCell<Seal>,
    /// Turns whose code waits for its client.
    pub(crate) suspended: SuspendedTurns,
    /// Ends that are to be written.
    pub(crate) unwritten: UnwrittenEnds,
}

/// A background response that runs or waits.
#[derive(Clone, Debug)]
pub(crate) struct RunningResponse {
    pub(crate) owner: String,
    pub(crate) log: Arc<Log>,
    pub(crate) cancel: CancellationToken,
}

impl LiveResponses {
    pub(crate) fn new(options: &ResponseOptions) -> Self {
        Self {
            running: Mutex::default(),
            most: options.max_background.saturating_add(options.max_queued),
            places: Arc::new(Semaphore::new(
                options.max_background.clamp(1, Semaphore::MAX_PERMITS),
            )),
            seal: OnceCell::new(),
            suspended: SuspendedTurns::default(),
            unwritten: UnwrittenEnds::default(),
        }
    }

    /// Whether responses cannot be stored now.
    pub(crate) fn cannot_be_stored(&self) -> bool {
        self.unwritten.is_broken()
    }

    /// Notes a response that goes on in the background.
    pub(crate) fn add(&self, id: &str, running: RunningResponse) -> Result<(), ApiError> {
        let mut all = self.running();
        if all.len() >= self.most {
            return Err(ApiError {
                kind: ErrorKind::TooManyRequests,
                code: Some("rate_limit_exceeded".to_owned()),
                message: format!(
                    "{} background responses run or wait, and no more are allowed; try again when \
                     one has ended",
                    self.most
                ),
                param: Some("background".to_owned()),
            });
        }
        all.insert(id.to_owned(), running);
        Ok(())
    }

    pub(crate) fn remove(&self, id: &str) {
        self.running().remove(id);
    }

    /// An owner's response that runs.
    pub(crate) fn find(&self, owner: &str, id: &str) -> Option<RunningResponse> {
        let all = self.running();
        all.get(id).filter(|running| running.owner == owner).cloned()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, RunningResponse>> {
        self.running.lock()
    }
}
