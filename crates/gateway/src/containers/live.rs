//! Containers that are at hand: each is a session, which ends when nobody has used it for its time.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cellblock_interpreter::Session;
use tokio::sync::Notify;

use crate::quotas::SandboxPermit;

/// How long a session that is to end may take to hear an interrupt before it gets another.
const AGAIN: Duration = Duration::from_millis(300);

/// The containers that are at hand. Those of an earlier process are not, and so have expired.
#[derive(Clone, Debug, Default)]
pub struct Containers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    live: Mutex<HashMap<String, Entry>>,
    /// Told when one may be had again.
    freed: Notify,
}

#[derive(Debug)]
struct Entry {
    live: Arc<Live>,
    /// Turns that have it, and requests that are at work with it.
    holds: usize,
    used: Instant,
}

/// A container that is at hand.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) owner: String,
    /// Whether a response made it for itself, rather than a client by name.
    pub(crate) auto: bool,
    pub(crate) memory_limit: Option<String>,
    /// The first container of its response, where it is one of a call beside the first.
    pub(crate) beside: Option<String>,
    pub(crate) idle: Duration,
    pub(crate) session: Session,
    /// Counts it among those that its owner has.
    pub(crate) _permit: SandboxPermit,
    /// Held while code runs: calls of one container run one after the other.
    pub(crate) state: tokio::sync::Mutex<State>,
}

/// What is in a container's sandbox.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The sandbox.
    pub(crate) sandbox: Option<String>,
    /// Ids of users' files that are in it.
    pub(crate) placed: HashSet<String>,
}

/// Keeps a container from expiring.
#[derive(Debug)]
pub(crate) struct Held {
    live: Arc<Live>,
    shared: Arc<Shared>,
}

impl std::ops::Deref for Held {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(entry) = self.shared.live().get_mut(&self.live.id) {
            entry.holds -= 1;
            entry.used = Instant::now();
        }
        self.shared.freed.notify_waiters();
    }
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(self: &Arc<Self>, entry: &mut Entry) -> Held {
        entry.holds += 1;
        Held {
            live: Arc::clone(&entry.live),
            shared: Arc::clone(self),
        }
    }
}

/// Takes away one that nobody has, and that was not asked for by name or has expired.
fn idle(live: &mut HashMap<String, Entry>, owner: &str) -> Option<Arc<Live>> {
    let own = live.values().filter(|entry| entry.live.owner == owner);
    let idle = own.filter(|entry| entry.holds == 0 && (entry.live.auto || entry.is_over()));
    let oldest = idle.min_by_key(|entry| entry.used)?.live.id.clone();
    live.remove(&oldest).map(|entry| entry.live)
}

impl Entry {
    fn is_over(&self) -> bool {
        self.holds == 0 && self.used.elapsed() >= self.live.idle
    }
}

impl Live {
    /// Ends its session, whatever runs there.
    pub(crate) async fn end(&self) {
        let mut closing = std::pin::pin!(self.session.close());
        loop {
            tokio::select! {
                closed = &mut closing => {
                    if let Err(error) = closed {
                        tracing::warn!(error = &error as &dyn std::error::Error, "end a container");
                    }
                    return;
                }
                () = tokio::time::sleep(AGAIN) => self.session.interrupt(),
            }
        }
    }
}

impl Containers {
    /// Adds one and holds it. Where its owner has `most` already, an idle one that a response made for itself gives way, the one unused
    /// for the longest; without any, the new one is given back.
    pub(crate) fn add(&self, new: Live, most: usize) -> Result<(Held, Option<Arc<Live>>), Box<Live>> {
        let mut live = self.shared.live();
        let own = live.values().filter(|entry| entry.live.owner == new.owner);
        let mut evicted = None;
        if own.count() >= most {
            evicted = idle(&mut live, &new.owner);
            if evicted.is_none() {
                return Err(Box::new(new));
            }
        }
        let id = new.id.clone();
        let mut entry = Entry {
            live: Arc::new(new),
            holds: 0,
            used: Instant::now(),
        };
        let held = self.shared.hold(&mut entry);
        live.insert(id, entry);
        Ok((held, evicted))
    }

    /// Takes away an idle one that a response of the owner made for itself, the one unused for the longest.
    pub(crate) fn give_way(&self, owner: &str) -> Option<Arc<Live>> {
        idle(&mut self.shared.live(), owner)
    }

    /// Completes when one may have been freed since this was called.
    pub(crate) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.shared.freed.notified()
    }

    /// Holds one that has not expired.
    pub(crate) fn hold(&self, owner: &str, id: &str) -> Option<Held> {
        let mut live = self.shared.live();
        let entry = live.get_mut(id)?;
        if entry.live.owner != owner || entry.is_over() {
            return None;
        }
        Some(self.shared.hold(entry))
    }

    /// Holds the first container of the response that one belongs to.
    pub(crate) fn hold_first(&self, owner: &str, id: &str) -> Option<Held> {
        let held = self.hold(owner, id)?;
        match held.beside.clone() {
            Some(first) => self.hold(owner, &first),
            None => Some(held),
        }
    }

    /// Whether one is at hand and has not expired.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.shared.live().get(id).is_some_and(|entry| !entry.is_over())
    }

    /// Takes one away.
    pub(crate) fn take(&self, owner: &str, id: &str) -> Option<Arc<Live>> {
        let mut live = self.shared.live();
        live.get(id).filter(|entry| entry.live.owner == owner)?;
        let taken = live.remove(id).map(|entry| entry.live);
        drop(live);
        self.shared.freed.notify_waiters();
        taken
    }

    /// Takes those away that have expired.
    pub(crate) fn take_expired(&self) -> Vec<Arc<Live>> {
        let mut live = self.shared.live();
        let over = live.extract_if(|_, entry| entry.is_over());
        let over: Vec<_> = over.map(|(_, entry)| entry.live).collect();
        drop(live);
        self.shared.freed.notify_waiters();
        over
    }

    /// Ends all, whatever they do, and completes when their sandboxes are gone.
    pub async fn close(&self) {
        let all: Vec<_> = self.shared.live().drain().map(|(_, entry)| entry.live).collect();
        futures_util::future::join_all(all.iter().map(|live| live.end())).await;
    }

    /// How many are at hand.
    pub fn count(&self) -> usize {
        self.shared.live().len()
    }
}
