//! A session of a dialect, with what the dialect keeps beside it.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::hosting::{
    HostingError, HostingLimits, Permit, Registry, Reservation, ResidentGuard, ResidentSession,
};
use cellblock_interpreter::{Error, Session};
use tokio_util::sync::CancellationToken;

/// A session with what its dialect keeps beside it.
#[derive(Debug)]
pub struct DialectSession<T> {
    /// The session.
    pub session: Session,
    /// Data that the dialect keeps with the session.
    pub kept: T,
    idle: Duration,
    _permit: Permit,
}

impl<T: Send + Sync + 'static> ResidentSession for DialectSession<T> {
    fn idle_timeout(&self) -> Duration {
        self.idle
    }

    fn interrupt(&self) {
        self.session.interrupt();
    }

    async fn close(&self) -> Result<(), Error> {
        self.session.close().await
    }
}

/// A place for a session, with its owner's permit. Both are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionReservation<'a, T> {
    pub(crate) place: Reservation<'a, DialectSession<T>>,
    pub(crate) permit: Permit,
}

impl<T: Send + Sync + 'static> SessionReservation<'_, T> {
    /// Puts a session there, and holds it.
    pub(crate) fn fill(
        self,
        session: Session,
        idle: Duration,
        kept: T,
    ) -> Result<ResidentGuard<DialectSession<T>>, HostingError> {
        self.place.fill(DialectSession {
            session,
            kept,
            idle,
            _permit: self.permit,
        })
    }
}

/// The sessions of a dialect, by their ids. Clones share them.
#[derive(Debug)]
pub struct DialectSessions<T>(Arc<Registry<DialectSession<T>>>);

impl<T> Clone for DialectSessions<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> std::ops::Deref for DialectSessions<T> {
    type Target = Registry<DialectSession<T>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: Send + Sync + 'static> DialectSessions<T> {
    /// None yet. Those that expire are closed, and all of them when the host stops.
    pub(crate) fn new(
        limits: HostingLimits,
        tasks: &tokio_util::task::TaskTracker,
        stopping: CancellationToken,
        ending: CancellationToken,
    ) -> Self {
        let registry = Arc::new(Registry::new(limits));
        let swept = Arc::clone(&registry);
        tasks.spawn(async move {
            swept.sweep(stopping.cancelled()).await;
            swept.close_all(ending.cancelled()).await;
        });
        Self(registry)
    }
}
