//! State of a session in addition to its sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_artifact::ArtifactId;
use cellblock_interpreter::derivation::Derivation;
use cellblock_interpreter::hosting::{Exclusive, Resident, ResidentGuard, ResidentSession};
use cellblock_interpreter::toolset::{Toolset, ToolsetKind};
use cellblock_interpreter::workbench::DatasetMount;
use cellblock_interpreter::{Error, Session};
use parking_lot::{Mutex, MutexGuard};

use super::made::{MadeArtifact, SessionArtifacts};
use super::users::{LEFT_TIMEOUT, SessionUsers};
use cellblock_interpreter::hosting::Permit;

/// A session.
pub(crate) type SessionEntry = Resident<McpSession>;
/// A session that a call is at work on, so that it does not expire meanwhile.
pub(crate) type Use = ResidentGuard<McpSession>;
/// The turn of a call whose code runs in a session.
pub(crate) type SessionTurn = Exclusive<McpSession>;

/// A session with what stands on it.
#[derive(Debug)]
pub(crate) struct McpSession {
    pub(crate) session: Session,
    /// Those that are offered, over the same sandbox.
    pub(super) toolsets: Vec<(ToolsetKind, Arc<dyn Toolset>)>,
    /// Files of the host that its code sees.
    pub(crate) datasets: Vec<DatasetMount>,
    /// Given back when nothing is left of it.
    pub(super) _permit: Permit,
    pub(super) idle_timeout: Duration,
    pub(super) users: SessionUsers,
    pub(super) made: Mutex<SessionArtifacts>,
    pub(super) cells: AtomicU64,
}

impl McpSession {
    /// One of its toolsets.
    pub(crate) fn toolset(&self, kind: ToolsetKind) -> Option<&dyn Toolset> {
        let found = self.toolsets.iter().find(|(known, _)| *known == kind);
        found.map(|(_, toolset)| &**toolset)
    }

    /// The toolset that derives from recorded results.
    pub(crate) fn derivation(&self) -> Option<&Derivation> {
        self.toolsets.iter().find_map(|(_, toolset)| toolset.downcast())
    }

    /// Gives derivations all attempts: what failed before says nothing about a new result.
    pub(crate) fn renew_attempts(&self) {
        if let Some(derivation) = self.derivation() {
            derivation.renew_attempts();
        }
    }

    pub(crate) fn remember(&self, made: MadeArtifact) {
        self.made().add(made);
    }

    pub(crate) fn artifacts(&self) -> Vec<MadeArtifact> {
        self.made().all()
    }

    pub(crate) fn artifact(&self, id: ArtifactId) -> Option<MadeArtifact> {
        self.made().find(id)
    }

    pub(crate) fn count_cell(&self) {
        self.cells.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn cells(&self) -> u64 {
        self.cells.load(Ordering::Relaxed)
    }

    fn made(&self) -> MutexGuard<'_, SessionArtifacts> {
        self.made.lock()
    }
}

impl ResidentSession for McpSession {
    fn idle_timeout(&self) -> Duration {
        if self.users.have_left() {
            return self.idle_timeout.min(LEFT_TIMEOUT);
        }
        self.idle_timeout
    }

    fn interrupt(&self) {
        self.session.interrupt();
    }

    async fn close(&self) -> Result<(), Error> {
        let closed = self.session.close().await;
        for (kind, toolset) in &self.toolsets {
            if let Err(error) = toolset.close().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    toolset = kind.name,
                    "could not close a toolset"
                );
            }
        }
        closed
    }
}
