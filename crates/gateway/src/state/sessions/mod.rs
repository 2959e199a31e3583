//! Sessions of the REST API, by their ids.

mod cells;
mod rest;
mod stream;

use std::sync::Arc;

use cellblock_interpreter::hosting::{HostingError, HostingLimits, Registry};

use crate::options::SessionsOptions;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

pub(crate) use cells::{StoredCell, StoredCells};
pub(crate) use rest::{
    HostedSession, RestSession, SessionInput, SessionTerms, VolumeAccess, VolumeOfSession, lock,
};
pub(crate) use stream::{CellReader, CellStream};

/// The sessions that there are.
#[derive(Debug)]
pub(crate) struct Sessions(pub(crate) Registry<RestSession>);

impl Sessions {
    /// None yet.
    pub(crate) fn new(options: &SessionsOptions) -> Self {
        Self(Registry::new(HostingLimits {
            per_owner: options.max_per_key,
            waiting: options.max_waiting,
            ..HostingLimits::default()
        }))
    }

    /// The session of this id, if it is the caller's.
    pub(crate) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<HostedSession>, Problem> {
        let found = self.0.get(&caller.owner, id);
        found.ok_or_else(|| not_found("there is no such session; it may have expired"))
    }
}

/// Closes sessions that expire, and all when the gateway stops: each when its request has ended, or
/// when everything has to.
pub(crate) async fn sweep(gateway: Gateway) {
    let sessions = &gateway.sessions.0;
    sessions.sweep(gateway.stopping.cancelled()).await;
    sessions.close_all(gateway.ending.cancelled()).await;
}

impl From<HostingError> for Problem {
    fn from(error: HostingError) -> Self {
        match error {
            HostingError::OwnerFull { held, limit } => Self::busy(
                "too_many_sessions",
                format!(
                    "there are {held} sessions, and {limit} are allowed; delete one, or wait until one \
                     has expired"
                ),
            ),
            HostingError::Busy { waiting } => Self::busy(
                "session_busy",
                format!("{waiting} requests wait for this session already; wait for their answers"),
            ),
            HostingError::Ended | HostingError::Closed | HostingError::Exists | HostingError::Full { .. } => {
                not_found("the session has ended")
            }
        }
    }
}

fn not_found(message: &str) -> Problem {
    Problem::missing("session_not_found", message)
}
