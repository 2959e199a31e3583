//! Room for sandboxes: how many containers have one at a time, in all and of each owner.
//!
//! A container takes its place before it has a sandbox and gives it back when the sandbox is gone.
//! While there is no room, idle containers give way to it; where none is idle, code waits: first
//! come, first served among the code of one owner, and owners take turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::wire::{ApiError, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::memory;
use crate::options::ContainerOptions;
use crate::quotas::{ExceededQuota, SandboxPermit};
use crate::records::RecordsError;
use crate::state::Gateway;

/// Code of the error where there are as many containers as there may be.
pub(crate) const TOO_MANY: &str = "too_many_containers";
/// Interval between two attempts to get a place that another gateway may have given back.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The places of all containers.
#[derive(Debug)]
pub(super) struct ContainerRoom {
    most: usize,
    most_own: usize,
    taken: Mutex<RoomCounts>,
    /// Code of each owner that waits, one after the other.
    lines: Mutex<HashMap<String, OwnerQueue>>,
    /// Notified when a place is free.
    freed: Notify,
}

/// The waiting code of one owner, and since when nothing that ran here could give it a place.
type OwnerQueue = Arc<tokio::sync::Mutex<Option<Instant>>>;

#[derive(Debug, Default)]
struct RoomCounts {
    all: usize,
    own: HashMap<String, usize>,
}

/// A place for a sandbox. It is free again when this is dropped.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub(crate) struct RoomPermit {
    room: Arc<ContainerRoom>,
    owner: String,
    _quota: SandboxPermit,
}

/// Reason that there is no place now.
enum RoomRefusal {
    /// The owner's quota is used up.
    Quota(ExceededQuota),
    /// The owner has as many as one may have.
    Own(usize),
    /// The gateway has as many as it may have.
    All(usize),
    /// The records of quotas cannot be read.
    Broken(RecordsError),
}

impl ContainerRoom {
    pub(crate) fn new(options: &ContainerOptions) -> Self {
        Self {
            most: options.max_sandboxes.unwrap_or_else(memory::sandboxes),
            most_own: options.max_per_key,
            taken: Mutex::default(),
            lines: Mutex::default(),
            freed: Notify::new(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, RoomCounts> {
        self.taken.lock()
    }

    /// Counts one more, unless there are as many as allowed.
    fn take(&self, owner: &str) -> Result<(), RoomRefusal> {
        let mut taken = self.taken();
        let own = taken.own.get(owner).copied().unwrap_or_default();
        if own >= self.most_own {
            return Err(RoomRefusal::Own(self.most_own));
        }
        if taken.all >= self.most {
            return Err(RoomRefusal::All(self.most));
        }
        taken.all += 1;
        taken.own.insert(owner.to_owned(), own + 1);
        Ok(())
    }

    /// Counts one less and notifies nobody: a place that was free a moment ago does not help those
    /// who wait, and they would never rest.
    fn give_back(&self, owner: &str) {
        let mut taken = self.taken();
        taken.all -= 1;
        if let Some(own) = taken.own.get_mut(owner) {
            *own -= 1;
            if *own == 0 {
                taken.own.remove(owner);
            }
        }
    }

    fn line(&self, owner: &str) -> OwnerQueue {
        let mut lines = self.lines.lock();
        // A line in which nobody stands is forgotten.
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        Arc::clone(lines.entry(owner.to_owned()).or_default())
    }
}

impl Drop for RoomPermit {
    fn drop(&mut self) {
        self.room.give_back(&self.owner);
        self.room.freed.notify_waiters();
    }
}

/// Takes a place for a sandbox of an owner. Waits until there is one, for at most
/// `containers.wait_timeout`, and for at most `containers.quota_wait_timeout` where the owner has
/// used up what it may have and no response of it would give a place back.
pub(crate) async fn enter(gateway: &Gateway, owner: &str) -> Result<RoomPermit, ApiError> {
    let options = &gateway.options.containers;
    let until = Instant::now() + options.wait_timeout;
    let room = &gateway.containers.room;
    let line = room.line(owner);
    let Ok(mut hopeless) = timeout_at(until, line.lock()).await else {
        return try_enter(gateway, owner).await;
    };
    let mut idle = gateway.containers.registry.changes();
    loop {
        // Listened to before the try, so that nothing is missed between the two.
        let freed = room.freed.notified();
        let permitted = gateway.quotas.freed();
        let full = match attempt(gateway, owner).await {
            Ok(permit) => return Ok(permit),
            Err(RoomRefusal::Broken(error)) => return Err(error.into()),
            Err(full) => full,
        };
        let own = matches!(full, RoomRefusal::Quota(_) | RoomRefusal::Own(_));
        let limit = if own && !gateway.containers.may_give_way(owner) {
            // Whoever is next in the line has waited as long.
            let since = *hopeless.get_or_insert_with(Instant::now);
            until.min(since + options.quota_wait_timeout)
        } else {
            *hopeless = None;
            until
        };
        if limit <= Instant::now() {
            return Err(full.into_error(gateway, owner));
        }
        // A place that other gateways have is given back without a word here.
        let elsewhere = async {
            if gateway.records.is_shared() {
                tokio::time::sleep(ELSEWHERE).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = freed => {}
            () = permitted => {}
            () = elsewhere => {}
            // An idle container can give way.
            _ = idle.changed() => {}
            () = tokio::time::sleep_until(limit) => {}
        }
    }
}

/// Takes a place if there is one now, or one that an idle container can give.
pub(crate) async fn try_enter(gateway: &Gateway, owner: &str) -> Result<RoomPermit, ApiError> {
    let entered = attempt(gateway, owner).await;
    entered.map_err(|full| full.into_error(gateway, owner))
}

impl RoomRefusal {
    /// The error that says so; one of a quota is logged and counted.
    fn into_error(self, gateway: &Gateway, owner: &str) -> ApiError {
        match self {
            Self::Quota(refused) => refused.of(&gateway.quotas, owner),
            Self::Own(most) => too_many(most, "you can have"),
            Self::All(most) => too_many(most, "this gateway can have"),
            Self::Broken(error) => error.into(),
        }
    }
}

async fn attempt(gateway: &Gateway, owner: &str) -> Result<RoomPermit, RoomRefusal> {
    loop {
        let full = match place(gateway, owner).await {
            Ok(permit) => return Ok(permit),
            Err(full) => full,
        };
        let whose = match full {
            RoomRefusal::Quota(_) | RoomRefusal::Own(_) => Some(owner),
            RoomRefusal::All(_) => None,
            RoomRefusal::Broken(_) => return Err(full),
        };
        let Some(idle) = gateway.containers.give_way(whose) else {
            return Err(full);
        };
        tracing::info!(container = idle.id, "an idle container gave way to a new one");
        gateway.containers.registry.end(&idle).await;
    }
}

async fn place(gateway: &Gateway, owner: &str) -> Result<RoomPermit, RoomRefusal> {
    let room = &gateway.containers.room;
    room.take(owner)?;
    let asked = gateway.quotas.try_sandbox(owner).await;
    match asked
        .map_err(RoomRefusal::Broken)
        .and_then(|it| it.map_err(RoomRefusal::Quota))
    {
        Ok(quota) => Ok(RoomPermit {
            room: Arc::clone(room),
            owner: owner.to_owned(),
            _quota: quota,
        }),
        Err(full) => {
            room.give_back(owner);
            Err(full)
        }
    }
}

fn too_many(most: usize, who: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::TooManyRequests,
        code: Some(TOO_MANY.to_owned()),
        message: format!(
            "there are {most} containers already, the most that {who}; delete one, or wait until one expires"
        ),
        param: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum RoomStep {
        Take(usize),
        GiveBack(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<RoomStep>> {
        let step = prop_oneof![
            2 => (0..OWNERS.len()).prop_map(RoomStep::Take),
            1 => any::<usize>().prop_map(RoomStep::GiveBack),
        ];
        proptest::collection::vec(step, 0..60)
    }

    const OWNERS: [&str; 3] = ["a", "b", "c"];

    proptest! {
        /// A place is refused exactly when an owner or all have as many as they may have, and
        /// nothing is remembered of who has none.
        #[test]
        fn places_are_given_up_to_both_limits_and_no_further(
            most in 1..6_usize, most_own in 1..4_usize, steps in steps()
        ) {
            let room = ContainerRoom::new(&ContainerOptions {
                max_sandboxes: Some(most),
                max_per_key: most_own,
                ..ContainerOptions::default()
            });
            let mut taken: Vec<&str> = Vec::new();
            for step in steps {
                match step {
                    RoomStep::Take(owner) => {
                        let owner = OWNERS[owner];
                        let own = taken.iter().filter(|it| **it == owner).count();
                        match room.take(owner) {
                            Ok(()) => {
                                prop_assert!(own < most_own && taken.len() < most);
                                taken.push(owner);
                            }
                            Err(RoomRefusal::Own(limit)) => {
                                prop_assert_eq!((own, limit), (most_own, most_own));
                            }
                            Err(RoomRefusal::All(limit)) => {
                                prop_assert_eq!((taken.len(), limit), (most, most));
                            }
                            Err(RoomRefusal::Quota(_) | RoomRefusal::Broken(_)) => {
                                prop_assert!(false, "another reason");
                            }
                        }
                    }
                    RoomStep::GiveBack(at) if !taken.is_empty() => {
                        room.give_back(taken.swap_remove(at % taken.len()));
                    }
                    RoomStep::GiveBack(_) => {}
                }
                let owners = OWNERS.iter().filter(|owner| taken.contains(*owner)).count();
                let counted = room.taken();
                prop_assert_eq!((counted.all, counted.own.len()), (taken.len(), owners));
            }
        }
    }
}
