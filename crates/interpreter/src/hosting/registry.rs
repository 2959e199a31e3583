//! All sessions of a face, by their handles.

use std::collections::HashMap;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::sleep_until;

use super::{HostingError, Resident, ResidentGuard, ResidentSession};
use crate::error::Result;

/// Limits of a registry.
#[derive(Clone, Copy, Debug)]
pub struct HostingLimits {
    /// Maximum number of sessions.
    pub sessions: usize,
    /// Maximum number of sessions of an owner.
    pub per_owner: usize,
    /// Maximum number of calls that wait for a session.
    pub waiting: usize,
}

impl Default for HostingLimits {
    fn default() -> Self {
        Self {
            sessions: usize::MAX,
            per_owner: usize::MAX,
            waiting: usize::MAX,
        }
    }
}

/// Sessions by their handles. Each belongs to an owner, expires when nobody uses it, and is used by
/// one call at a time.
#[derive(Debug)]
pub struct Registry<T> {
    map: Mutex<Map<T>>,
    limits: HostingLimits,
    /// Sent when a session is not held any more.
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct Map<T> {
    slots: HashMap<String, RegistrySlot<T>>,
    closed: bool,
}

#[derive(Debug)]
enum RegistrySlot<T> {
    /// Reserved for an owner while a session is created.
    Reserved(String),
    Taken(Arc<Resident<T>>),
}

/// A reserved place for a session. It is free again when this is dropped without one.
#[derive(Debug)]
#[must_use = "the place is free again when this is dropped"]
pub struct Reservation<'a, T> {
    registry: &'a Registry<T>,
    owner: &'a str,
    id: &'a str,
}

impl<T: ResidentSession> Registry<T> {
    /// Returns a registry without sessions.
    pub fn new(limits: HostingLimits) -> Self {
        Self {
            map: Mutex::new(Map {
                slots: HashMap::new(),
                closed: false,
            }),
            limits,
            changes: watch::Sender::new(()),
        }
    }

    /// Reserves a place for one more session of an owner.
    pub fn reserve<'a>(&'a self, owner: &'a str, id: &'a str) -> Result<Reservation<'a, T>, HostingError> {
        let mut map = self.map();
        if map.closed {
            return Err(HostingError::Closed);
        }
        if let Some(there) = map.slots.get(id) {
            let over = there.resident().is_some_and(|it| it.is_expired());
            if !over {
                return Err(HostingError::Exists);
            }
        }
        let held = map.slots.values().filter(|slot| slot.owner() == owner).count();
        let limit = self.limits.per_owner;
        if held >= limit {
            return Err(HostingError::OwnerFull { held, limit });
        }
        let limit = self.limits.sessions;
        if map.slots.len() >= limit {
            return Err(HostingError::Full { limit });
        }
        map.slots
            .insert(id.to_owned(), RegistrySlot::Reserved(owner.to_owned()));
        let registry = self;
        Ok(Reservation { registry, owner, id })
    }

    /// Hosts a session whatever the limits, and holds it; or holds the one that has this id already.
    pub fn host(&self, owner: &str, id: &str, hosted: T) -> Result<ResidentGuard<T>, HostingError> {
        let mut map = self.map();
        if map.closed {
            return Err(HostingError::Closed);
        }
        if let Some(RegistrySlot::Taken(there)) = map.slots.get(id) {
            return Ok(there.revive());
        }
        let (waiting, changes) = (self.limits.waiting, self.changes.clone());
        let resident = Resident::new(id.to_owned(), owner.to_owned(), hosted, waiting, changes);
        let resident = Arc::new(resident);
        let held = resident.revive();
        map.slots.insert(id.to_owned(), RegistrySlot::Taken(resident));
        Ok(held)
    }

    /// Returns an owner's session that has not expired.
    pub fn get(&self, owner: &str, id: &str) -> Option<Arc<Resident<T>>> {
        let map = self.map();
        let found = map.slots.get(id)?.resident()?;
        (found.owner == owner && !found.is_expired()).then(|| Arc::clone(found))
    }

    /// Returns an owner's session, and keeps it from expiring.
    pub fn hold(&self, owner: &str, id: &str) -> Option<ResidentGuard<T>> {
        self.get(owner, id)?.hold()
    }

    /// Returns an owner's sessions, oldest first.
    pub fn of(&self, owner: &str) -> Vec<Arc<Resident<T>>> {
        let mut own = self.all(|resident| resident.owner == owner);
        own.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        own
    }

    /// Returns the number of sessions.
    pub fn count(&self) -> usize {
        self.all(|_| true).len()
    }

    /// Returns the sessions that nobody holds and that have a rank, lowest rank first.
    pub fn idle_by<K: Ord>(&self, rank: impl Fn(&Resident<T>) -> Option<K>) -> Vec<Arc<Resident<T>>> {
        let idle = self.all(|resident| resident.holds() == 0).into_iter();
        let mut ranked: Vec<_> = idle.filter_map(|it| Some((rank(&it)?, it))).collect();
        ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
        ranked.into_iter().map(|(_, resident)| resident).collect()
    }

    /// Takes a session out unless somebody holds it or it is being closed; says whether it did. The
    /// caller closes it.
    pub fn take_idle(&self, resident: &Resident<T>) -> bool {
        let mut map = self.map();
        let taken = resident.retire(false);
        if taken {
            map.slots.remove(&resident.id);
        }
        taken
    }

    /// Returns a receiver of the moments at which a session is not held any more.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Waits until sessions expire, and takes them out. The caller closes them.
    pub async fn expired(&self) -> Vec<Arc<Resident<T>>> {
        let mut changes = self.changes();
        loop {
            let over = self.take_expired();
            if !over.is_empty() {
                return over;
            }
            let next = self.all(|_| true).iter().filter_map(|it| it.due()).min();
            let due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = due => {}
            }
        }
    }

    fn take_expired(&self) -> Vec<Arc<Resident<T>>> {
        let mut map = self.map();
        let over = map.slots.extract_if(|_, slot| {
            let resident = slot.resident();
            resident.is_some_and(|it| it.retire(true))
        });
        over.filter_map(|(_, slot)| slot.resident().cloned()).collect()
    }

    /// Closes sessions as they expire, until `end` completes and those are closed.
    pub async fn sweep(&self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut closing = FuturesUnordered::new();
        loop {
            tokio::select! {
                over = self.expired() => closing.extend(over.into_iter().map(|resident| async move {
                    tracing::info!(session = resident.id, "a session has expired");
                    self.end(&resident).await;
                })),
                Some(()) = closing.next() => {}
                () = &mut end => break,
            }
        }
        closing.collect::<()>().await;
    }

    /// Takes a session out, interrupts what runs in it, turns away those who wait for it, and
    /// completes when it is closed.
    pub async fn close(&self, resident: &Arc<Resident<T>>) -> Result<()> {
        {
            let mut map = self.map();
            let there = map.slots.get(&resident.id).and_then(RegistrySlot::resident);
            if there.is_some_and(|there| Arc::ptr_eq(there, resident)) {
                map.slots.remove(&resident.id);
            }
        }
        resident.close().await
    }

    /// The same where nobody waits for the result: an error is logged.
    pub async fn end(&self, resident: &Arc<Resident<T>>) {
        if let Err(error) = self.close(resident).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, session = resident.id, "close a session");
        }
    }

    /// Hosts no session any more, closes each as soon as no call uses it, and all of them once
    /// `now` completes. Completes when they are closed.
    pub async fn close_all(&self, now: impl Future<Output = ()>) {
        self.map().closed = true;
        let now = now.shared();
        let all = self.all(|_| true);
        let ended = all.iter().map(|resident| async {
            tokio::select! {
                () = resident.quiet() => {}
                () = now.clone() => {}
            }
            self.end(resident).await;
        });
        join_all(ended).await;
    }

    fn all(&self, which: impl Fn(&Resident<T>) -> bool) -> Vec<Arc<Resident<T>>> {
        let map = self.map();
        let residents = map.slots.values().filter_map(RegistrySlot::resident);
        residents.filter(|resident| which(resident)).cloned().collect()
    }
}

impl<T> Registry<T> {
    fn map(&self) -> MutexGuard<'_, Map<T>> {
        self.map.lock()
    }
}

impl<T> RegistrySlot<T> {
    fn resident(&self) -> Option<&Arc<Resident<T>>> {
        match self {
            Self::Reserved(_) => None,
            Self::Taken(resident) => Some(resident),
        }
    }

    fn owner(&self) -> &str {
        match self {
            Self::Reserved(owner) => owner,
            Self::Taken(resident) => &resident.owner,
        }
    }
}

impl<T: ResidentSession> Reservation<'_, T> {
    /// Hosts a session there, and holds it.
    pub fn fill(self, hosted: T) -> Result<ResidentGuard<T>, HostingError> {
        self.registry.host(self.owner, self.id, hosted)
    }
}

impl<T> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        let mut map = self.registry.map();
        if let Some(RegistrySlot::Reserved(_)) = map.slots.get(self.id) {
            map.slots.remove(self.id);
        }
    }
}
