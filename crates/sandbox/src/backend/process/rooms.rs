//! Making rooms, and keeping one spare: a room costs a millisecond or two and little memory, and making it needs no image.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellblock_guest::launcher::control::Operation;
use cellblock_jail::room::RoomLimits;

use super::launchers::Launchers;
use super::room::Room;
use super::slots::{SLOTS, Slots};
use crate::error::{Kind, Result};

/// How long making a spare waits, so that it does not compete with the kernel that was just asked for.
const PAUSE: Duration = Duration::from_millis(25);

/// Where rooms come from.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) launchers: Launchers,
    next: AtomicU64,
    slots: Slots,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    room: Option<(RoomLimits, Room)>,
    coming: bool,
}

impl Rooms {
    pub(super) fn new(launchers: Launchers) -> Self {
        Self {
            launchers,
            next: AtomicU64::new(0),
            slots: Slots::default(),
            spare: Mutex::default(),
        }
    }

    /// Makes a room.
    pub(super) async fn make(&self, limits: RoomLimits) -> Result<Room> {
        let launcher = self.launchers.alive().await?;
        let name = format!("room-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let most = launcher.rooms().min(SLOTS);
        let slot = self.slots.take(most).ok_or(Kind::Full { limit: most })?;
        let number = slot.number();
        let mut room = Room::claim(launcher, name.clone(), slot);
        room.make(Operation::CreateRoom {
            room: name,
            slot: number,
            limits,
        })
        .await?;
        Ok(room)
    }

    /// The spare room, if it has these limits. One with others is given up: callers with the same limits are the rule.
    pub(super) fn take_spare(&self, limits: &RoomLimits) -> Option<Room> {
        let (made_with, room) = self.lock().room.take()?;
        (made_with == *limits && room.is_served()).then_some(room)
    }

    /// Makes a spare room in the background, unless one is there or on its way.
    pub(super) fn refill(self: &Arc<Self>, limits: RoomLimits) {
        {
            let mut spare = self.lock();
            if spare.coming || spare.room.is_some() {
                return;
            }
            spare.coming = true;
        }
        // Held weakly while waiting: a backend that is dropped meanwhile must not be kept alive.
        let rooms = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE).await;
            let Some(rooms) = rooms.upgrade() else { return };
            let made = rooms.make(limits.clone()).await;
            let mut spare = rooms.lock();
            spare.coming = false;
            match made {
                Ok(room) => spare.room = Some((limits, room)),
                // Whoever needs a room next makes it, and hears of the failure.
                Err(error) => tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not make a spare room"
                ),
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
