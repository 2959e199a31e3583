//! Turns at the processors: as many cells run at once as these can use, the others wait, first in, first out.
//!
//! Cells that wait for something use no processor. So while cells queue and the machine is idle,
//! more of them are let in.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Interval at which the first of those that wait checks whether the machine is idle.
const LOOK: Duration = Duration::from_millis(100);
/// Hundredths of the processors' time, of which more cells are let in if less is used.
const BUSY: u64 = 75;
/// Cells that are let in beyond the usual number while the machine is idle, in times of that number.
const BEYOND: usize = 15;

/// The cells that run and wait.
#[derive(Debug)]
pub(crate) struct Cores {
    turns: Arc<Semaphore>,
    usual: usize,
    /// Turns beyond the usual number.
    beyond: AtomicUsize,
    load: Mutex<Load>,
}

/// A turn of a cell, which is over when this is dropped.
#[derive(Debug)]
#[must_use = "the turn is over when this is dropped"]
pub(crate) struct Slot {
    turn: Option<OwnedSemaphorePermit>,
    cores: Arc<Cores>,
}

/// Work of the processors so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

/// Load of the processors since the last look.
#[derive(Debug)]
struct Load {
    read: fn() -> Option<Ticks>,
    last: Option<(Instant, Ticks)>,
}

impl Cores {
    /// So many cells run at once, and more while the machine is idle; without a number, twice as
    /// many as there are processors.
    pub(crate) fn new(usual: Option<usize>) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with(usual.unwrap_or(processors * 2), ticks)
    }

    fn with(usual: usize, read: fn() -> Option<Ticks>) -> Arc<Self> {
        let usual = usual.clamp(1, Semaphore::MAX_PERMITS / (BEYOND + 1));
        Arc::new(Self {
            turns: Arc::new(Semaphore::new(usual)),
            usual,
            beyond: AtomicUsize::new(0),
            load: Mutex::new(Load { read, last: None }),
        })
    }

    /// Waits for a turn.
    pub(crate) async fn slot(self: &Arc<Self>) -> Slot {
        let mut asked = std::pin::pin!(Arc::clone(&self.turns).acquire_owned());
        loop {
            tokio::select! {
                biased;
                // The semaphore is never closed.
                turn = &mut asked => return Slot { turn: turn.ok(), cores: Arc::clone(self) },
                () = tokio::time::sleep(LOOK) => self.look(),
            }
        }
    }

    /// Lets more in if the machine is idle.
    fn look(&self) {
        let mut load = self.load.lock();
        if load.is_idle() && self.beyond.load(Ordering::Relaxed) < self.usual * BEYOND {
            self.beyond.fetch_add(self.usual, Ordering::Relaxed);
            self.turns.add_permits(self.usual);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let fewer = |beyond: usize| beyond.checked_sub(1);
        let beyond = &self.cores.beyond;
        if beyond
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_ok()
            && let Some(turn) = self.turn.take()
        {
            turn.forget();
        }
    }
}

impl Load {
    /// Whether the processors had time left since somebody looked last, if that is a while ago.
    fn is_idle(&mut self) -> bool {
        let Some((at, before)) = self.last else {
            self.last = (self.read)().map(|now| (Instant::now(), now));
            return false;
        };
        if at.elapsed() < LOOK / 2 {
            return false;
        }
        let Some(now) = (self.read)() else { return false };
        self.last = Some((Instant::now(), now));
        now.left_since(before)
    }
}

impl Ticks {
    fn left_since(self, before: Self) -> bool {
        let all = self.all.saturating_sub(before.all);
        let used = all.saturating_sub(self.idle.saturating_sub(before.idle));
        all > 0 && used * 100 < all * BUSY
    }

    /// The first line of `/proc/stat`.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let numbers: Vec<u64> = line
            .split_ascii_whitespace()
            .map_while(|it| it.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; time of guests is counted as user time already.
        let all = numbers.iter().take(8).sum();
        let idle = numbers.get(3)? + numbers.get(4)?;
        Some(Self { idle, all })
    }
}

fn ticks() -> Option<Ticks> {
    Ticks::read(&fs::read_to_string("/proc/stat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_idle_when_a_quarter_of_its_time_is_left() {
        let before = Ticks::read("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2\n").unwrap();
        assert_eq!(before, Ticks { idle: 800, all: 1000 });
        for (idle, left) in [(24, false), (25, false), (26, true), (100, true)] {
            let now = Ticks {
                idle: before.idle + idle,
                all: before.all + 100,
            };
            assert_eq!(now.left_since(before), left, "{idle}");
        }
        assert!(!before.left_since(before));
        assert_eq!(Ticks::read("intr 1 2 3"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn cells_wait_their_turn_on_a_machine_that_is_busy() {
        let cores = Cores::with(1, || Some(Ticks { idle: 0, all: 0 }));
        let first = cores.slot().await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..3)
            .map(|number| {
                let (cores, order) = (Arc::clone(&cores), Arc::clone(&order));
                tokio::spawn(async move {
                    let _slot = cores.slot().await;
                    order.lock().push(number);
                })
            })
            .collect();
        tokio::time::sleep(LOOK * 3).await;
        assert_eq!(*order.lock(), [0; 0]);
        drop(first);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock(), [0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_cells_block_no_others() {
        fn idle() -> Option<Ticks> {
            static CLOCK: AtomicUsize = AtomicUsize::new(0);
            let all = u64::try_from(CLOCK.fetch_add(1, Ordering::Relaxed)).ok()?;
            Some(Ticks { idle: all, all })
        }
        let cores = Cores::with(2, idle);
        let mut all = Vec::new();
        for _ in 0..7 {
            all.push(cores.slot().await);
        }
        drop(all);
        // What was let in beyond the usual number is no more than that afterwards.
        assert_eq!(
            cores.turns.available_permits(),
            2 + cores.beyond.load(Ordering::Relaxed)
        );
        assert!(cores.beyond.load(Ordering::Relaxed) < 2);
    }
}
