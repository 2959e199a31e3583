//! Numbers that select the user ids of rooms: no two rooms that exist at the same time share one.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Maximum number of rooms with different ids per launcher of root: its ids except the keep's own.
pub(super) const SLOTS: u32 = super::ids::COUNT - 1;

/// Assigns slots in turn, so that a released slot is reused as late as possible.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<SlotTable>>);

#[derive(Debug, Default)]
struct SlotTable {
    next: u32,
    slots: HashSet<u32>,
}

/// A slot, released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u32,
    from: Slots,
}

impl Slots {
    /// Takes the next free slot of the first `most`; `None` if all are in use.
    pub(super) fn take(&self, most: u32) -> Option<Slot> {
        let mut taken = self.0.lock();
        for _ in 0..most {
            let number = taken.next % most;
            taken.next = (number + 1) % most;
            if taken.slots.insert(number) {
                return Some(Slot {
                    number,
                    from: self.clone(),
                });
            }
        }
        None
    }
}

impl Slot {
    pub(super) const fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.from.0.lock();
        taken.slots.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_in_use_is_skipped_when_numbers_start_again() {
        let slots = Slots::default();
        let kept = slots.take(SLOTS).unwrap();
        assert_eq!(kept.number(), 0);
        let passed: Vec<u32> = (1..SLOTS).map(|_| slots.take(SLOTS).unwrap().number()).collect();
        assert_eq!(passed, (1..SLOTS).collect::<Vec<_>>());
        assert_eq!(slots.take(SLOTS).unwrap().number(), 1);
        drop(kept);
        let again: Vec<u32> = (0..SLOTS).map(|_| slots.take(SLOTS).unwrap().number()).collect();
        assert_eq!(again.iter().filter(|number| **number == 0).count(), 1);
    }

    #[test]
    fn no_slot_is_assigned_twice() {
        let slots = Slots::default();
        let all: Vec<Slot> = std::iter::from_fn(|| slots.take(SLOTS)).collect();
        assert_eq!(all.len(), SLOTS as usize);
        drop(all);
        assert!(slots.take(SLOTS).is_some());
    }
}
