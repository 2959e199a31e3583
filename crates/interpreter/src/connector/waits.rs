//! Time for which the calls of a session have waited for its client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// A clock that runs while at least one call waits. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitClock(Arc<Mutex<Clock>>);

#[derive(Debug, Default)]
struct Clock {
    calls: usize,
    since: Option<Instant>,
    before: Duration,
}

/// A call that waits until this is dropped.
#[derive(Debug)]
#[must_use = "the call waits until this is dropped"]
pub(super) struct Wait(WaitClock);

impl WaitClock {
    pub(super) fn begin(&self) -> Wait {
        let mut clock = self.clock();
        clock.calls += 1;
        clock.since.get_or_insert_with(Instant::now);
        Wait(self.clone())
    }

    pub(super) fn total(&self) -> Duration {
        let clock = self.clock();
        clock.before + clock.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.lock()
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut clock = self.0.clock();
        clock.calls -= 1;
        if clock.calls == 0
            && let Some(since) = clock.since.take()
        {
            clock.before += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_at_the_same_time_are_counted_once() {
        let waits = WaitClock::default();
        assert_eq!(waits.total(), Duration::ZERO);
        let (one, other) = (waits.begin(), waits.begin());
        std::thread::sleep(Duration::from_millis(20));
        drop(one);
        let meanwhile = waits.total();
        assert!(meanwhile >= Duration::from_millis(20), "{meanwhile:?}");
        drop(other);
        let total = waits.total();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(waits.total(), total, "nothing waits any more");
    }
}
