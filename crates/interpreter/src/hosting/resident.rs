//! One session of a registry: who uses it, and whose turn it is.

use std::future::ready;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{HostingError, ResidentSession};
use crate::error::{Error, Result};
use crate::session::until;

/// A session of a [`Registry`](super::Registry).
#[derive(Debug)]
pub struct Resident<T> {
    /// Its handle.
    pub id: String,
    /// Its owner; for all others it does not exist.
    pub owner: String,
    /// Time of its creation.
    pub created: SystemTime,
    hosted: T,
    uses: Mutex<Uses>,
    turn: Arc<tokio::sync::Mutex<()>>,
    queue: Arc<Semaphore>,
    waiting: usize,
    closed: CancellationToken,
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct Uses {
    holds: usize,
    last: Instant,
}

/// Keeps a session from expiring until it is dropped.
#[derive(Debug)]
pub struct ResidentGuard<T> {
    resident: Arc<Resident<T>>,
    /// Whether it counts as a use of the session.
    is_use: bool,
}

/// The right to use a session alone. Others wait until it is dropped.
#[derive(Debug)]
#[must_use = "the turn is over when this is dropped"]
pub struct Exclusive<T> {
    _turn: OwnedMutexGuard<()>,
    _place: OwnedSemaphorePermit,
    held: ResidentGuard<T>,
}

impl<T: ResidentSession> Resident<T> {
    pub(super) fn new(
        id: String,
        owner: String,
        hosted: T,
        waiting: usize,
        changes: watch::Sender<()>,
    ) -> Self {
        let waiting = waiting.min(Semaphore::MAX_PERMITS - 1);
        Self {
            id,
            owner,
            created: SystemTime::now(),
            hosted,
            uses: Mutex::new(Uses {
                holds: 0,
                last: Instant::now(),
            }),
            turn: Arc::default(),
            // One call that has its turn, and those that wait.
            queue: Arc::new(Semaphore::new(waiting + 1)),
            waiting,
            closed: CancellationToken::new(),
            changes,
        }
    }

    /// Keeps the session from expiring; `None` if it has expired or has been closed.
    pub fn hold(self: &Arc<Self>) -> Option<ResidentGuard<T>> {
        let mut uses = self.uses();
        if self.closed.is_cancelled() || self.is_over(&uses) {
            return None;
        }
        Some(self.hold_one(&mut uses))
    }

    /// The same for one that may have expired and has not been closed.
    pub(super) fn revive(self: &Arc<Self>) -> ResidentGuard<T> {
        self.hold_one(&mut self.uses())
    }

    /// Holds the session without using it: afterwards it expires when it would have expired.
    pub fn peek(self: &Arc<Self>) -> Option<ResidentGuard<T>> {
        let mut uses = self.uses();
        if self.closed.is_cancelled() || self.is_over(&uses) {
            return None;
        }
        uses.holds += 1;
        Some(ResidentGuard {
            resident: Arc::clone(self),
            is_use: false,
        })
    }

    fn hold_one(self: &Arc<Self>, uses: &mut Uses) -> ResidentGuard<T> {
        uses.holds += 1;
        uses.last = Instant::now();
        ResidentGuard {
            resident: Arc::clone(self),
            is_use: true,
        }
    }

    /// Waits until no other call uses the session.
    pub async fn turn(self: &Arc<Self>) -> Result<Exclusive<T>, HostingError> {
        let waiting = self.waiting;
        let place = Arc::clone(&self.queue).try_acquire_owned();
        let place = place.map_err(|_| HostingError::Busy { waiting })?;
        let held = self.hold().ok_or(HostingError::Ended)?;
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(HostingError::Ended),
            turn = Arc::clone(&self.turn).lock_owned() => Ok(Exclusive { _turn: turn, _place: place, held }),
        }
    }

    /// Drives `work`, which uses the session, to its end. Interrupts it once `cancel` completes or
    /// the session is closed.
    pub fn until<R>(
        &self,
        cancel: impl Future<Output = ()>,
        work: impl Future<Output = R>,
    ) -> impl Future<Output = R> {
        let over = async move {
            tokio::select! {
                () = cancel => {}
                () = self.closed.cancelled() => {}
            }
        };
        until(|| self.hosted.interrupt(), over, work)
    }

    /// Completes when the session is closed, before what runs in it has ended.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Returns the number of those who hold the session.
    pub fn holds(&self) -> usize {
        self.uses().holds
    }

    /// Returns when somebody began or ceased to hold the session.
    pub fn last_used(&self) -> Instant {
        self.uses().last
    }

    /// Returns how long nobody has held the session.
    pub fn idle(&self) -> Duration {
        let uses = self.uses();
        if uses.holds > 0 {
            return Duration::ZERO;
        }
        uses.last.elapsed()
    }

    /// Whether the session has expired or has been closed.
    pub fn is_expired(&self) -> bool {
        self.closed.is_cancelled() || self.is_over(&self.uses())
    }

    fn is_over(&self, uses: &Uses) -> bool {
        uses.holds == 0 && uses.last.elapsed() >= self.hosted.idle_timeout()
    }

    /// Returns the time at which it expires; `None` while somebody holds it.
    pub(super) fn due(&self) -> Option<Instant> {
        let uses = self.uses();
        (uses.holds == 0).then(|| uses.last + self.hosted.idle_timeout())
    }

    /// Lets nobody hold it from here on, unless somebody does now; `expired` where it also has to
    /// have expired. Says whether that is so.
    pub(super) fn retire(&self, expired: bool) -> bool {
        let uses = self.uses();
        let retires = uses.holds == 0 && !self.closed.is_cancelled() && (!expired || self.is_over(&uses));
        if retires {
            self.closed.cancel();
        }
        retires
    }

    /// Completes when no call uses it.
    pub(super) async fn quiet(&self) {
        drop(self.turn.lock().await);
    }

    /// Interrupts what runs in the session, turns away those who wait for it, and completes when
    /// its sandbox is gone.
    pub(super) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let closing = async {
            let _turn = self.turn.lock().await;
            self.hosted.close().await
        };
        match until(|| self.hosted.interrupt(), ready(()), closing).await {
            // Somebody else closed it.
            Ok(()) | Err(Error::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl<T> Resident<T> {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock()
    }
}

impl<T> Deref for Resident<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.hosted
    }
}

impl<T> Deref for ResidentGuard<T> {
    type Target = Arc<Resident<T>>;

    fn deref(&self) -> &Arc<Resident<T>> {
        &self.resident
    }
}

impl<T> Deref for Exclusive<T> {
    type Target = Resident<T>;

    fn deref(&self) -> &Resident<T> {
        &self.held
    }
}

impl<T> Drop for ResidentGuard<T> {
    fn drop(&mut self) {
        let mut uses = self.resident.uses();
        uses.holds -= 1;
        if self.is_use {
            uses.last = Instant::now();
        }
        let idle = uses.holds == 0;
        drop(uses);
        if idle {
            self.resident.changes.send_replace(());
        }
    }
}
