//! Holding sessions for others: the one place for owners, handles, idle timeouts, limits, turns and ends.
//!
//! ```text
//! Registry ──reserve──> Reservation ──fill──┐
//!     ├──hold────────────────────────────> Held       it cannot expire meanwhile
//!     └──get──> Resident ──turn──────────> Exclusive  nobody else uses the session meanwhile
//! ```
//!
//! A [`Meter`] says how much an owner may have, run and send; [`uploads`] receive what it sends.
//!
//! A registry knows neither sandboxes nor protocols. What a face keeps beside a session is its
//! [`ResidentSession`].

mod meter;
mod owner;
mod registry;
mod resident;
mod shelf;
#[cfg(test)]
mod tests;
pub mod uploads;

use std::time::Duration;

pub use meter::{Admission, Meter, MeterDenial, Permit, UnlimitedMeter};
pub use owner::Owner;
pub use registry::{HostingLimits, Registry, Reservation};
pub use resident::{Exclusive, Resident, ResidentGuard};
pub use shelf::{ShelfError, VolumeShelf, VolumeSummary};

use crate::error::Result;

/// A session with what its face keeps beside it.
pub trait ResidentSession: Send + Sync + 'static {
    /// Idle timeout. It may change while somebody holds the session.
    fn idle_timeout(&self) -> Duration;

    /// Interrupts what runs in the session now.
    fn interrupt(&self);

    /// Closes the session, and gives back what is kept beside it.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Reason that a session cannot be hosted or used. Each face has its own words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostingError {
    /// The registry has been closed.
    #[error("host a session: the host is stopping")]
    Closed,
    /// The owner has as many sessions as one owner may have.
    #[error(
        "host a session: its owner has {held}, the limit is {limit}; close one, or wait until one expires"
    )]
    OwnerFull {
        /// Number of the owner's sessions.
        held: usize,
        /// Maximum number of sessions of an owner.
        limit: usize,
    },
    /// The registry has as many sessions as it may have.
    #[error("host a session: there are {limit} already, which is the limit; wait until one expires")]
    Full {
        /// Maximum number of sessions.
        limit: usize,
    },
    /// A session with this id is there, or is being made.
    #[error("host a session: there is one with this id already")]
    Exists,
    /// The maximum number of calls is already waiting for the session.
    #[error("wait for a session: {waiting} calls wait for it, which is the limit; wait for one of them")]
    Busy {
        /// Maximum number of calls that wait.
        waiting: usize,
    },
    /// The session ended before it was the caller's turn.
    #[error("wait for a session: it has ended; create another one")]
    Ended,
}
