//! The rate of a connector's requests, over all sessions.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::options::Rate;

/// Distributes turns, so that at most so many are taken in any time of that length, counted from an
/// idle start.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Time that a turn takes.
    each: Duration,
    /// Turns that may be taken at once after a pause.
    burst: Duration,
    /// Time at which all turns that were given are used up.
    used: Mutex<Option<Instant>>,
}

impl Turns {
    pub(crate) fn new(rate: Rate) -> Self {
        let each = rate.per / rate.count;
        Self {
            each,
            burst: each * (rate.count - 1).min(BURST),
            used: Mutex::new(None),
        }
    }

    /// Returns when the next request may be made. If that is after `until`, it is the error, and no
    /// turn is taken.
    pub(crate) fn take(&self, now: Instant, until: Instant) -> Result<Instant, Instant> {
        let mut used = self.used.lock();
        let from = used.map_or(now, |used| used.max(now));
        let turn = from.checked_sub(self.burst).map_or(now, |turn| turn.max(now));
        if turn > until {
            return Err(turn);
        }
        *used = Some(from + self.each);
        Ok(turn)
    }
}

/// Maximum number of turns that are taken at once, except the first.
const BURST: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_after_a_burst_are_apart_and_none_is_given_after_the_end() {
        let turns = Turns::new("60/min".parse().unwrap());
        let now = Instant::now();
        let until = now + Duration::from_secs(2);
        for _ in 0..10 {
            assert_eq!(turns.take(now, until), Ok(now));
        }
        for seconds in [1, 2] {
            assert_eq!(turns.take(now, until), Ok(now + Duration::from_secs(seconds)));
        }
        for _ in 0..2 {
            assert_eq!(turns.take(now, until), Err(now + Duration::from_secs(3)));
        }
        let later = now + Duration::from_mins(1);
        assert_eq!(turns.take(later, later), Ok(later));
        let one = Turns::new("1/h".parse().unwrap());
        assert_eq!(one.take(now, until), Ok(now));
        assert_eq!(one.take(now, until), Err(now + Duration::from_hours(1)));
    }
}
