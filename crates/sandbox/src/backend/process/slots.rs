//! Numbers that select the user ids of rooms: no two rooms that exist at the same time have the same.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// How many rooms one launcher of root can tell apart: its ids but the keep's own.
pub(super) const SLOTS: u32 = super::ids::COUNT - 1;

/// Hands out slots in turn, so that one which was just given back is used again as late as possible.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    next: u32,
    slots: HashSet<u32>,
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u32,
    from: Slots,
}

impl Slots {
    /// Takes the next free one of the first `most` slots; `None` when all are taken.
    pub(super) fn take(&self, most: u32) -> Option<Slot> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut taken = self.from.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.slots.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_in_use_is_passed_over_when_the_numbers_begin_again() {
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
    fn no_slot_is_given_twice_and_none_when_all_are_taken() {
        let slots = Slots::default();
        let all: Vec<Slot> = std::iter::from_fn(|| slots.take(SLOTS)).collect();
        assert_eq!(all.len(), SLOTS as usize);
        drop(all);
        assert!(slots.take(SLOTS).is_some());
    }
}
