//! All sessions of the API, by their ids.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::held::{Held, lock};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// How often a session that is in use is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// The sessions that there are.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    map: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug)]
enum Entry {
    /// A place that is taken while a session is made.
    Taken(String),
    Held(Arc<Held>),
}

impl Entry {
    fn owner(&self) -> &str {
        match self {
            Self::Taken(owner) => owner,
            Self::Held(held) => &held.owner,
        }
    }
}

/// A place for a session; dropped without one, it is free again.
#[derive(Debug)]
pub(super) struct Place {
    gateway: Gateway,
    id: String,
}

impl Sessions {
    /// The session of this id, if it is the caller's.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Result<Arc<Held>, Problem> {
        match lock(&self.map).get(id) {
            Some(Entry::Held(held)) if held.owner == caller.owner => Ok(Arc::clone(held)),
            _ => Err(missing()),
        }
    }

    /// A caller's sessions, the oldest first.
    pub(super) fn of(&self, caller: &Caller) -> Vec<Arc<Held>> {
        let map = lock(&self.map);
        let held = map.values().filter_map(|entry| match entry {
            Entry::Held(held) if held.owner == caller.owner => Some(Arc::clone(held)),
            _ => None,
        });
        let mut found: Vec<_> = held.collect();
        found.sort_by_key(|held| held.created);
        found
    }

    /// Forgets a session.
    pub(super) fn remove(&self, id: &str) {
        lock(&self.map).remove(id);
    }
}

impl Place {
    /// Takes a place for one more session of this owner.
    pub(super) fn take(gateway: &Gateway, owner: &str, id: &str) -> Result<Self, Problem> {
        let limit = gateway.options.sessions.max_per_key;
        let mut map = lock(&gateway.sessions.map);
        let has = map.values().filter(|entry| entry.owner() == owner).count();
        if has >= limit {
            return Err(Problem::busy(
                "too_many_sessions",
                format!(
                    "there are {has} sessions, and {limit} are allowed; delete one, or wait until one has expired"
                ),
            ));
        }
        map.insert(id.to_owned(), Entry::Taken(owner.to_owned()));
        Ok(Self {
            gateway: gateway.clone(),
            id: id.to_owned(),
        })
    }

    /// Puts a session there, which lives until it is ended, is not used for long, or the gateway stops.
    pub(super) fn fill(self, held: Held) -> Arc<Held> {
        let held = Arc::new(held);
        let gateway = self.gateway.clone();
        lock(&gateway.sessions.map).insert(self.id.clone(), Entry::Held(Arc::clone(&held)));
        gateway
            .tasks
            .spawn(watch(gateway.clone(), self, Arc::clone(&held)));
        held
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gateway.sessions.remove(&self.id);
    }
}

/// Waits for a session's end, whoever brings it about.
async fn watch(gateway: Gateway, place: Place, held: Arc<Held>) {
    loop {
        let busy = held.is_busy();
        let due = if busy {
            Instant::now() + LOOK
        } else {
            held.last_used() + held.terms.idle
        };
        tokio::select! {
            () = held.closed.cancelled() => break,
            () = gateway.stopping.cancelled() => {
                // What runs has until the end to come to its own.
                tokio::select! {
                    () = held.closed.cancelled() => {}
                    () = held.idle() => {}
                    () = gateway.ending.cancelled() => {}
                }
                break;
            }
            () = tokio::time::sleep_until(due) => {}
        }
        if !held.is_busy() && held.last_used().elapsed() >= held.terms.idle {
            tracing::info!(session = held.id, "a session has expired");
            break;
        }
    }
    drop(place);
    held.end().await;
}

pub(super) fn missing() -> Problem {
    Problem::missing(
        "session_not_found",
        "there is no such session; it may have expired",
    )
}
