//! Containers that are at hand: each is a session, which ends when nobody has used it for its time.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cellblock_agent::wire::ApiError;
use cellblock_interpreter::hosting::{self, HostingLimits, Registry, Resident, ResidentSession};
use cellblock_interpreter::{Error, Session};
use parking_lot::Mutex;

use super::cores::Cores;
use super::room::{self, ContainerRoom, RoomPermit};
use crate::options::ContainerOptions;
use crate::state::Gateway;
use crate::state::network::AllowedNetwork;

/// Keeps a container from expiring.
pub(crate) type HeldContainer = hosting::ResidentGuard<LiveContainer>;

/// The containers that are at hand. Those of an earlier process are not, and so have expired.
#[derive(Debug)]
pub struct Containers {
    pub(crate) registry: Registry<LiveContainer>,
    /// The places of their sandboxes.
    pub(super) room: Arc<ContainerRoom>,
    /// The turns of their code.
    pub(crate) cores: Arc<Cores>,
}

/// A container that is at hand.
#[derive(Debug)]
pub(crate) struct LiveContainer {
    /// Whether a response made it for itself, rather than a client by name.
    pub(crate) auto: bool,
    pub(crate) memory_limit: Option<String>,
    /// Hosts that its code reaches, with their secrets, which exist nowhere else.
    pub(crate) network: Option<AllowedNetwork>,
    /// The first container of its response, where it is one of a call beside the first.
    pub(crate) beside: Option<String>,
    pub(crate) idle: Duration,
    /// Time for which it is kept before a second response has used it, if that is shorter.
    pub(crate) brief: Option<Duration>,
    /// Whether another response has come back to it.
    pub(crate) followed: AtomicBool,
    pub(crate) session: Session,
    /// Whether it has room for a sandbox.
    pub(crate) furnished: AtomicBool,
    /// Note for the model that continues in it, until a model has received it.
    pub(crate) lost: Mutex<Option<String>>,
    /// Whether its files were left by an earlier sandbox, and belong into the next.
    pub(crate) revived: bool,
    /// Held while code runs: calls of one container run one after the other.
    pub(crate) state: tokio::sync::Mutex<ContainerState>,
}

/// State in a container's sandbox.
#[derive(Debug, Default)]
pub(crate) struct ContainerState {
    /// Its place among the sandboxes.
    pub(crate) room: Option<RoomPermit>,
    /// The sandbox.
    pub(crate) sandbox: Option<String>,
    /// Ids of files that are in it.
    pub(crate) placed: HashSet<String>,
    /// The same for each of its checkpoints.
    pub(crate) checkpoints: HashMap<String, HashSet<String>>,
}

impl ResidentSession for LiveContainer {
    /// One that a response made for itself and that has no sandbox has nothing that could be used again.
    fn idle_timeout(&self) -> Duration {
        if self.auto && !self.has_sandbox() {
            return Duration::ZERO;
        }
        let followed = self.followed.load(Ordering::Relaxed);
        self.brief.filter(|_| !followed).unwrap_or(self.idle)
    }

    fn interrupt(&self) {
        self.session.interrupt();
    }

    /// Ends its session, and gives its place back.
    async fn close(&self) -> Result<(), Error> {
        let closed = self.session.close().await;
        self.furnished.store(false, Ordering::Relaxed);
        self.state.lock().await.room = None;
        closed
    }
}

impl LiveContainer {
    fn has_sandbox(&self) -> bool {
        self.furnished.load(Ordering::Relaxed)
    }

    /// Whether one response has used it and none has come back to it.
    fn is_one_shot(&self) -> bool {
        self.auto && !self.followed.load(Ordering::Relaxed)
    }

    /// Takes room for its sandbox, if it has none; waits for it.
    pub(crate) async fn enter(&self, gateway: &Gateway, owner: &str) -> Result<(), ApiError> {
        if self.has_sandbox() {
            return Ok(());
        }
        let mut state = self.state.lock().await;
        if state.room.is_none() {
            state.room = Some(room::enter(gateway, owner).await?);
            self.furnished.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The same without waiting; says whether there was room.
    pub(crate) async fn enter_now(&self, gateway: &Gateway, owner: &str) -> bool {
        if self.has_sandbox() {
            return true;
        }
        // While it is locked without room, somebody waits for that.
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        if state.room.is_none() {
            let Ok(permit) = room::try_enter(gateway, owner).await else {
                return false;
            };
            state.room = Some(permit);
            self.furnished.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Returns what a model has to know before it continues, on the first call.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.lock().take()
    }

    /// Adds a note for the next model that goes on.
    pub(crate) fn tell_next(&self, note: &str) {
        let mut lost = self.lost.lock();
        *lost = match lost.take() {
            Some(before) if before.contains(note) => Some(before),
            Some(before) => Some(format!("{before} {note}")),
            None => Some(note.to_owned()),
        };
    }

    /// Returns the same note and keeps it.
    pub(crate) fn still_lost(&self) -> Option<String> {
        self.lost.lock().clone()
    }
}

impl Containers {
    /// None yet.
    pub(crate) fn new(options: &ContainerOptions) -> Self {
        Self {
            registry: Registry::new(HostingLimits::default()),
            room: Arc::new(ContainerRoom::new(options)),
            cores: Cores::new(options.max_concurrent),
        }
    }

    /// Takes out an idle container, of this owner if one is given, to make room for another: first
    /// those that a single response has used, and of these the least recently used. A container
    /// that a client created by name must have expired.
    pub(crate) fn give_way(&self, owner: Option<&str>) -> Option<Arc<Resident<LiveContainer>>> {
        let idle = self.registry.idle_by(|live| {
            let own = owner.is_none_or(|owner| live.owner == owner);
            let gives_way = own && live.has_sandbox() && (live.auto || live.is_expired());
            gives_way.then(|| (!live.is_one_shot(), live.last_used()))
        });
        idle.into_iter().find(|live| self.registry.take_idle(live))
    }

    /// Returns whether a container of this owner has a sandbox that it gives up for another once no
    /// response uses it.
    pub(super) fn may_give_way(&self, owner: &str) -> bool {
        let own = self.registry.of(owner);
        own.iter().any(|live| live.auto && live.has_sandbox())
    }

    /// Takes away idle ones that a single response has used, all but the latest `kept`.
    pub(crate) fn take_surplus(&self, kept: usize) -> Vec<Arc<Resident<LiveContainer>>> {
        let mut once = self
            .registry
            .idle_by(|live| (live.is_one_shot() && !live.is_expired()).then(|| live.last_used()));
        once.truncate(once.len().saturating_sub(kept));
        once.retain(|live| self.registry.take_idle(live));
        once
    }

    /// Holds one for another response than the one that it was made for.
    pub(crate) fn follow(&self, owner: &str, id: &str) -> Option<HeldContainer> {
        let held = self.registry.hold(owner, id)?;
        held.followed.store(true, Ordering::Relaxed);
        Some(held)
    }

    /// The same for the first container of the response that one belongs to.
    pub(crate) fn follow_first(&self, owner: &str, id: &str) -> Option<HeldContainer> {
        let held = self.registry.hold(owner, id)?;
        let first = held.beside.as_deref().unwrap_or(id);
        self.follow(owner, first)
    }

    /// Whether one is at hand and has not expired.
    pub(crate) fn has(&self, owner: &str, id: &str) -> bool {
        self.registry.get(owner, id).is_some()
    }

    /// Ends all, whatever they do, and completes when their sandboxes are gone.
    pub async fn close(&self) {
        self.registry.close_all(ready(())).await;
    }

    /// Returns the number of containers at hand.
    pub fn count(&self) -> usize {
        self.registry.count()
    }
}
