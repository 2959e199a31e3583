//! State that the API keeps of a session.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cellblock_interpreter::cell::{Guard, Rescue};
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::hosting::{Resident, ResidentSession};
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::{ToolDefinition, Toolset, ToolsetKind};
use cellblock_interpreter::{Error, Session};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::{CellStream, StoredCell, StoredCells};
use crate::problem::Problem;
use crate::quotas::SandboxPermit;

/// A session of the API.
pub(crate) type HostedSession = Resident<RestSession>;

/// State that the API keeps of a session.
#[derive(Debug)]
pub(crate) struct RestSession {
    pub(crate) toolset: ToolsetKind,
    pub(crate) terms: SessionTerms,
    pub(crate) connectors: Vec<Arc<dyn Connector>>,
    pub(crate) volume: Option<VolumeOfSession>,
    pub(crate) session: Session,
    pub(crate) tools: Arc<dyn Toolset>,
    /// Its tools, described when they are first needed.
    pub(crate) definitions: OnceLock<Vec<ToolDefinition>>,
    pub(crate) cells: Mutex<StoredCells>,
    /// The cell of an undecided try.
    pub(crate) tried: Mutex<Option<StoredCell>>,
    /// The last stream of events that its client may come back to.
    pub(crate) stream: Mutex<Option<Arc<CellStream>>>,
    pub(crate) inputs: Mutex<BTreeMap<String, SessionInput>>,
    /// Bytes of its inputs and datasets.
    pub(crate) data: AtomicU64,
    pub(crate) _permit: SandboxPermit,
}

/// Terms on which a session was set up.
#[derive(Clone, Debug)]
pub(crate) struct SessionTerms {
    pub(crate) limits: Limits,
    pub(crate) prelude: Vec<String>,
    pub(crate) guard: Guard,
    pub(crate) rescue: Rescue,
    pub(crate) idle: Duration,
    pub(crate) on_idle: OnIdle,
    /// Time for which it is kept after it was hibernated because it was idle.
    pub(crate) hibernation: Duration,
}

impl SessionTerms {
    /// Returns how long it lives while nobody uses it.
    pub(crate) fn lifetime(&self) -> Duration {
        match self.on_idle {
            OnIdle::End => self.idle,
            OnIdle::Hibernate => self.idle.saturating_add(self.hibernation),
        }
    }
}

/// The volume of a session.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VolumeOfSession {
    /// Its name.
    pub(crate) name: String,
    pub(crate) access: VolumeAccess,
    /// The revision that the session started with.
    pub(crate) revision: u64,
}

/// Access of a session to its volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VolumeAccess {
    /// Its changes are saved, and no other session writes meanwhile.
    #[default]
    Write,
    /// It has a copy of the last revision, and its changes are not saved.
    Read,
}

/// An input that is bound.
#[derive(Clone, Debug)]
pub(crate) struct SessionInput {
    pub(crate) format: InputFormat,
    pub(crate) bytes: u64,
}

impl RestSession {
    /// Returns the tools of its toolset.
    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        self.definitions.get_or_init(|| self.tools.definitions())
    }

    /// Counts bytes of data that it is to keep.
    pub(crate) fn claim(&self, bytes: u64, limit: u64) -> Result<(), Problem> {
        let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= limit);
        let claimed = self.data.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        claimed
            .map(drop)
            .map_err(|_| Problem::too_large("the session's data", limit))
    }

    /// Gives up bytes of data.
    pub(crate) fn release(&self, bytes: u64) {
        self.data.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl ResidentSession for RestSession {
    fn idle_timeout(&self) -> Duration {
        self.terms.lifetime()
    }

    fn interrupt(&self) {
        self.session.interrupt();
    }

    async fn close(&self) -> Result<(), Error> {
        let closed = self.session.close().await;
        if let Err(error) = self.tools.close().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not close a toolset"
            );
        }
        closed
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing below the locks leaves them half changed.
    mutex.lock()
}
