//! A session that somebody holds, and whose turn it is to use it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::alias::AliasStore;
use cellblock_interpreter::cell::{Guard, Rescue};
use cellblock_interpreter::derivation::Derivation;
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::workbench::{Mounted, Workbench};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cells::Kept;
use crate::problem::Problem;
use crate::quotas::SandboxPermit;

/// A session of the API.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) toolset: ToolsetName,
    pub(super) created: u64,
    pub(super) terms: Terms,
    pub(super) session: Session,
    pub(super) tools: Tools,
    pub(super) cells: Mutex<Kept>,
    pub(super) inputs: Mutex<BTreeMap<String, Bound>>,
    pub(super) datasets: Mutex<Vec<Mounted>>,
    /// Bytes of its inputs and datasets.
    pub(super) data: AtomicU64,
    /// Told when it is over.
    pub(super) closed: CancellationToken,
    used: Mutex<Instant>,
    turn: Arc<tokio::sync::Mutex<()>>,
    places: Arc<Semaphore>,
    waiting: usize,
    _permit: SandboxPermit,
}

/// Toolset of a session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolsetName {
    /// Cells, as `run_python`.
    #[default]
    Interpreter,
    /// Calls under a contract, over recorded tool results.
    Derivation,
    /// Commands and files, in addition to cells.
    Workbench,
}

/// What stands behind a session's tools.
#[derive(Debug)]
pub(super) enum Tools {
    Interpreter,
    Derivation(Box<tokio::sync::Mutex<Derivation>>, AliasStore),
    Workbench(Workbench),
}

/// How a session was set up.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) limits: Limits,
    pub(super) prelude: Vec<String>,
    pub(super) guard: Guard,
    pub(super) rescue: Rescue,
    pub(super) idle: Duration,
}

/// An input that is bound.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) format: InputFormat,
    pub(super) bytes: u64,
}

/// The right to use a session; others wait until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    held: Arc<Held>,
    _guard: OwnedMutexGuard<()>,
    _place: OwnedSemaphorePermit,
}

impl Held {
    #[expect(clippy::too_many_arguments, reason = "each is a field")]
    pub(super) fn new(
        id: String,
        owner: String,
        toolset: ToolsetName,
        terms: Terms,
        session: Session,
        tools: Tools,
        kept: Kept,
        waiting: usize,
        permit: SandboxPermit,
    ) -> Self {
        Self {
            id,
            owner,
            toolset,
            created: crate::now(),
            terms,
            session,
            tools,
            cells: Mutex::new(kept),
            inputs: Mutex::default(),
            datasets: Mutex::default(),
            data: AtomicU64::new(0),
            closed: CancellationToken::new(),
            used: Mutex::new(Instant::now()),
            turn: Arc::default(),
            // One that works, and those that wait.
            places: Arc::new(Semaphore::new(waiting + 1)),
            waiting,
            _permit: permit,
        }
    }

    /// Waits for the session.
    pub(super) async fn turn(self: &Arc<Self>) -> Result<Turn, Problem> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let waiting = self.waiting;
            Problem::busy(
                "session_busy",
                format!("{waiting} requests wait for this session already; wait for their answers"),
            )
        })?;
        let turn = Arc::clone(&self.turn).lock_owned();
        let over = || Problem::missing("session_not_found", "the session has ended");
        let turn = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(over()),
            turn = turn => turn,
        };
        self.touch();
        Ok(Turn {
            held: Arc::clone(self),
            _guard: turn,
            _place: place,
        })
    }

    /// Whether somebody uses it now.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// When it was last used.
    pub(super) fn last_used(&self) -> Instant {
        *lock(&self.used)
    }

    fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// Counts bytes of data that it is to keep.
    pub(super) fn claim(&self, bytes: u64, limit: u64) -> Result<(), Problem> {
        let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= limit);
        let claimed = self.data.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        claimed
            .map(drop)
            .map_err(|_| Problem::too_large("the session's data", limit))
    }

    /// Gives up bytes of data.
    pub(super) fn release(&self, bytes: u64) {
        self.data.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Does something with the session. When `gone` is told, or the session is to end, whatever runs in it is stopped.
    pub(super) async fn attend<T>(&self, gone: &CancellationToken, work: impl Future<Output = T>) -> T {
        let over = async {
            tokio::select! {
                () = gone.cancelled() => {}
                () = self.closed.cancelled() => {}
            }
        };
        self.session.until(over, work).await
    }

    /// Completes when nobody uses it.
    pub(super) async fn idle(&self) {
        drop(self.turn.lock().await);
    }

    /// Stops what runs, lets those who wait go, and completes when its sandbox is gone.
    pub(super) async fn end(&self) {
        self.closed.cancel();
        let _turn = self.turn.lock().await;
        if let Err(error) = self.session.close().await
            && !matches!(error, cellblock_interpreter::Error::Closed)
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                session = self.id,
                "end a session"
            );
        }
        if let Tools::Derivation(_, aliases) = &self.tools
            && let Err(error) = aliases.close().await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                session = self.id,
                "give up recorded results"
            );
        }
    }
}

impl Turn {
    /// The session that it is of.
    pub(super) fn held(&self) -> &Held {
        &self.held
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held.touch();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing below the locks leaves them half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
