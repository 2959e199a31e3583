//! One session, and who is using it.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cellblock_artifact::ArtifactId;
use cellblock_interpreter::alias::AliasStore;
use cellblock_interpreter::derivation::Derivation;
use cellblock_interpreter::workbench::{Mounted, Workbench};
use cellblock_interpreter::{Error, Session};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use super::made::{Made, Remembered};
use crate::meter::Permit;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// A session with what stands on it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) handle: String,
    pub(crate) owner: Owner,
    pub(crate) session: Session,
    pub(crate) workbench: Workbench,
    /// Over the same sandbox; only where the toolset is offered.
    pub(crate) derivation: Option<AsyncMutex<Derivation>>,
    /// Whether its calls may fail as often as at first: what failed before says nothing about a new result.
    pub(super) renewed: AtomicBool,
    /// The tool results that it derives from.
    pub(crate) aliases: Option<AliasStore>,
    /// Files of the host that its code sees.
    pub(crate) datasets: Vec<Mounted>,
    /// Given back when nothing is left of it.
    pub(super) _permit: Permit,
    /// Held while code of a call runs, so that a cancelled call stops its own code and no other.
    pub(super) turn: Arc<AsyncMutex<()>>,
    pub(super) made: Mutex<Remembered>,
    pub(super) use_: Mutex<Times>,
}

/// When it was used.
#[derive(Debug)]
pub(super) struct Times {
    created: SystemTime,
    /// Calls at work on it.
    users: usize,
    last: Instant,
    cells: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            created: SystemTime::now(),
            users: 0,
            last: Instant::now(),
            cells: 0,
        }
    }
}

impl Entry {
    /// Waits until no other call's code runs in it.
    pub(crate) async fn turn(&self, stop: &CancellationToken) -> Result<OwnedMutexGuard<()>, Refusal> {
        tokio::select! {
            turn = Arc::clone(&self.turn).lock_owned() => Ok(turn),
            () = stop.cancelled() => Err(Refusal::cancelled()),
        }
    }

    /// Does work that runs code. When it is to stop, the code is interrupted until the work is done.
    pub(crate) async fn unless<T>(&self, stop: &CancellationToken, work: impl Future<Output = T>) -> T {
        self.session.until(stop.cancelled(), work).await
    }

    /// Ends it, and what runs in it.
    pub(crate) async fn close(&self) -> Result<(), Refusal> {
        let closed = self.session.close_now().await;
        if let Some(aliases) = &self.aliases
            && let Err(error) = aliases.close().await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not give tool results up"
            );
        }
        match closed {
            // Somebody else ended it.
            Ok(()) | Err(Error::Closed) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the derivation's next call all attempts, without waiting for one that runs.
    pub(crate) fn renew_attempts(&self) {
        self.renewed.store(true, Ordering::Relaxed);
    }

    /// Whether attempts were renewed since this was last asked.
    pub(crate) fn take_renewed(&self) -> bool {
        self.renewed.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn remember(&self, made: Made) {
        self.made().add(made);
    }

    pub(crate) fn artifacts(&self) -> Vec<Made> {
        self.made().all()
    }

    pub(crate) fn artifact(&self, id: ArtifactId) -> Option<Made> {
        self.made().find(id)
    }

    /// When it was made, in milliseconds since 1970.
    pub(crate) fn created(&self) -> u64 {
        let since = self
            .times()
            .created
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long ago it was last used; nothing while a call is at work on it.
    pub(crate) fn idle(&self) -> Duration {
        let times = self.times();
        if times.users > 0 {
            return Duration::ZERO;
        }
        times.last.elapsed()
    }

    /// Whether a call is at work on it.
    pub(crate) fn is_busy(&self) -> bool {
        self.times().users > 0
    }

    pub(super) fn is_idle_for(&self, long: Duration) -> bool {
        let times = self.times();
        times.users == 0 && times.last.elapsed() >= long
    }

    pub(crate) fn count_cell(&self) {
        self.times().cells += 1;
    }

    pub(crate) fn cells(&self) -> u64 {
        self.times().cells
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, Remembered> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that a call is at work on, so that it does not expire meanwhile.
#[derive(Debug)]
pub(crate) struct Use(Arc<Entry>);

impl Use {
    pub(super) fn of(entry: Arc<Entry>) -> Self {
        entry.times().users += 1;
        Self(entry)
    }
}

impl Deref for Use {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut times = self.0.times();
        times.users -= 1;
        times.last = Instant::now();
    }
}
