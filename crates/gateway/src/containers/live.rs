//! Containers that are at hand: each is a session, which ends when nobody has used it for its time.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cellblock_agent::wire::ApiError;
use cellblock_interpreter::Session;
use tokio::sync::Notify;

use super::cores::Cores;
use super::room::{self, Room, RoomPermit};
use crate::options::ContainerOptions;
use crate::state::Gateway;

/// The containers that are at hand. Those of an earlier process are not, and so have expired.
#[derive(Clone, Debug)]
pub struct Containers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    live: Mutex<HashMap<String, Entry>>,
    /// Their sandboxes.
    room: Arc<Room>,
    /// Their code that runs.
    cores: Arc<Cores>,
    /// Notified when nobody has one any more, which may then be over.
    idle: Notify,
}

#[derive(Debug)]
struct Entry {
    live: Arc<Live>,
    /// Turns that have it, and requests that are at work with it.
    holds: usize,
    used: Instant,
    /// Whether another response has come back to it.
    followed: bool,
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
    /// How long it is kept before a second response has used it, where that is shorter.
    pub(crate) brief: Option<Duration>,
    pub(crate) session: Session,
    /// Whether it has room for a sandbox.
    pub(crate) furnished: AtomicBool,
    /// What a model has to know before it goes on in it, until it was told.
    pub(crate) lost: Mutex<Option<String>>,
    /// Whether its files were left by an earlier sandbox, and belong into the next.
    pub(crate) revived: bool,
    /// Held while code runs: calls of one container run one after the other.
    pub(crate) state: tokio::sync::Mutex<State>,
}

/// What is in a container's sandbox.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Its place among the sandboxes.
    pub(crate) room: Option<RoomPermit>,
    /// The sandbox.
    pub(crate) sandbox: Option<String>,
    /// Ids of files that are in it.
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
        self.shared.room.changed();
        self.shared.idle.notify_one();
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

impl Entry {
    fn is_over(&self) -> bool {
        if self.holds > 0 {
            return false;
        }
        let brief = self.live.brief.filter(|_| !self.followed);
        self.used.elapsed() >= brief.unwrap_or(self.live.idle) || (self.live.auto && !self.has_sandbox())
    }

    /// Whether it can give way to another: nobody has it, and no client has asked for it by name or it has expired.
    fn can_give_way(&self) -> bool {
        self.holds == 0 && self.has_sandbox() && (self.live.auto || self.is_over())
    }

    /// Whether one response has used it and none has come back to it.
    fn is_one_shot(&self) -> bool {
        self.live.auto && !self.followed
    }

    fn has_sandbox(&self) -> bool {
        self.live.furnished.load(Ordering::Relaxed)
    }
}

impl Live {
    /// Ends its session, whatever runs there, and gives its place back.
    pub(crate) async fn end(&self) {
        if let Err(error) = self.session.close_now().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "end a container");
        }
        self.furnished.store(false, Ordering::Relaxed);
        self.state.lock().await.room = None;
    }

    /// Takes room for its sandbox, if it has none; waits for it.
    pub(super) async fn enter(&self, gateway: &Gateway) -> Result<(), ApiError> {
        if self.furnished.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut state = self.state.lock().await;
        if state.room.is_none() {
            state.room = Some(room::enter(gateway, &self.owner).await?);
            self.furnished.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The same without waiting; says whether there was room.
    pub(super) async fn enter_now(&self, gateway: &Gateway) -> bool {
        if self.furnished.load(Ordering::Relaxed) {
            return true;
        }
        // While it is locked without room, somebody waits for that.
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        if state.room.is_none() {
            let Ok(permit) = room::try_enter(gateway, &self.owner).await else {
                return false;
            };
            state.room = Some(permit);
            self.furnished.store(true, Ordering::Relaxed);
        }
        true
    }

    /// What a model has to know before it goes on, the first time that this is asked.
    pub(super) fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The same, which is still to be told.
    pub(super) fn still_lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Containers {
    /// None yet.
    pub(crate) fn new(options: &ContainerOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                live: Mutex::default(),
                room: Arc::new(Room::new(options)),
                cores: Cores::new(options.max_concurrent),
                idle: Notify::new(),
            }),
        }
    }

    /// Adds one and holds it; or holds the one that has its id already, as two requests may come back to the same at once.
    pub(crate) fn add(&self, new: Live) -> Held {
        let mut live = self.shared.live();
        let entry = live.entry(new.id.clone()).or_insert_with(|| Entry {
            followed: new.revived,
            live: Arc::new(new),
            holds: 0,
            used: Instant::now(),
        });
        self.shared.hold(entry)
    }

    /// Takes away an idle one, of an owner where that is said, which gives way to another: one that a single response has used, if there is
    /// one, and of these the one unused for the longest.
    pub(crate) fn give_way(&self, owner: Option<&str>) -> Option<Arc<Live>> {
        let mut live = self.shared.live();
        let own = live
            .values()
            .filter(|entry| owner.is_none_or(|owner| entry.live.owner == owner));
        let idle = own.filter(|entry| entry.can_give_way());
        let first = idle.min_by_key(|entry| (!entry.is_one_shot(), entry.used))?;
        let id = first.live.id.clone();
        live.remove(&id).map(|entry| entry.live)
    }

    /// Completes when nobody has some container any more.
    pub(crate) async fn idle(&self) {
        self.shared.idle.notified().await;
    }

    /// The places of their sandboxes.
    pub(super) fn room(&self) -> &Arc<Room> {
        &self.shared.room
    }

    /// The turns of their code.
    pub(super) fn cores(&self) -> &Arc<Cores> {
        &self.shared.cores
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

    /// Holds one for another response than the one that it was made for.
    pub(crate) fn follow(&self, owner: &str, id: &str) -> Option<Held> {
        let held = self.hold(owner, id)?;
        if let Some(entry) = self.shared.live().get_mut(id) {
            entry.followed = true;
        }
        Some(held)
    }

    /// The same for the first container of the response that one belongs to.
    pub(crate) fn follow_first(&self, owner: &str, id: &str) -> Option<Held> {
        let held = self.hold(owner, id)?;
        let first = held.beside.clone().unwrap_or_else(|| id.to_owned());
        self.follow(owner, &first)
    }

    /// Whether one is at hand and has not expired.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.shared.live().get(id).is_some_and(|entry| !entry.is_over())
    }

    /// Takes one away.
    pub(crate) fn take(&self, owner: &str, id: &str) -> Option<Arc<Live>> {
        let mut live = self.shared.live();
        live.get(id).filter(|entry| entry.live.owner == owner)?;
        live.remove(id).map(|entry| entry.live)
    }

    /// Takes those away that have expired, and of idle ones that a single response has used all but the latest `kept`.
    pub(crate) fn take_expired(&self, kept: usize) -> Vec<Arc<Live>> {
        let mut live = self.shared.live();
        let once = live
            .values()
            .filter(|entry| entry.holds == 0 && entry.is_one_shot() && !entry.is_over());
        let mut once: Vec<_> = once.map(|entry| (entry.used, entry.live.id.clone())).collect();
        once.sort_unstable();
        once.truncate(once.len().saturating_sub(kept));
        let surplus: HashSet<String> = once.into_iter().map(|(_, id)| id).collect();
        let over = live.extract_if(|id, entry| entry.is_over() || surplus.contains(id));
        over.map(|(_, entry)| entry.live).collect()
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
