//! Creating rooms, and keeping one spare: a room takes a millisecond or two and little memory, and
//! needs no image.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_guest::launcher::control::Operation;
use cellblock_jail::room::RoomLimits;
use parking_lot::Mutex;

use super::launchers::Launchers;
use super::room::Room;
use super::slots::{SLOTS, Slots};
use crate::error::{Result, SandboxErrorKind};

/// Delay before a spare is created, so that it does not compete with the kernel that was just
/// requested.
const PAUSE: Duration = Duration::from_millis(25);

/// The source of rooms.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) launchers: Launchers,
    next: AtomicU64,
    slots: Slots,
    keeps_spare: bool,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    room: Option<(RoomLimits, Room)>,
    coming: bool,
}

impl Rooms {
    pub(super) fn new(launchers: Launchers, keeps_spare: bool) -> Self {
        Self {
            launchers,
            next: AtomicU64::new(0),
            slots: Slots::default(),
            keeps_spare,
            spare: Mutex::default(),
        }
    }

    /// Creates a room.
    pub(super) async fn make(&self, limits: RoomLimits) -> Result<Room> {
        let launcher = self.launchers.alive().await?;
        let name = format!("room-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let most = launcher.rooms().min(SLOTS);
        let slot = self
            .slots
            .take(most)
            .ok_or(SandboxErrorKind::Full { limit: most })?;
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

    /// Takes the spare room if it has these limits. One with other limits is destroyed: callers
    /// usually have the same limits.
    pub(super) fn take_spare(&self, limits: &RoomLimits) -> Option<Room> {
        let (made_with, room) = self.lock().room.take()?;
        (made_with == *limits && room.is_served()).then_some(room)
    }

    /// Creates a spare room in the background, unless one exists or is being created, or none is wanted.
    pub(super) fn refill(self: &Arc<Self>, limits: RoomLimits) {
        if !self.keeps_spare {
            return;
        }
        {
            let mut spare = self.lock();
            if spare.coming || spare.room.is_some() {
                return;
            }
            spare.coming = true;
        }
        // Held weakly during the delay, so that the backend can be dropped meanwhile.
        let rooms = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE).await;
            let Some(rooms) = rooms.upgrade() else { return };
            let made = rooms.make(limits.clone()).await;
            let mut spare = rooms.lock();
            spare.coming = false;
            match made {
                Ok(room) => spare.room = Some((limits, room)),
                // The next caller that needs a room creates it, and receives the error.
                Err(error) => tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not create a spare room"
                ),
            }
        });
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Spare> {
        self.spare.lock()
    }
}
