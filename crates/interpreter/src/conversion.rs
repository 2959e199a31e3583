//! Places of conversions: stored data that the host sorts, converts, hashes or draws outside cells.
//! At most as many conversions as there are processors run at a time, those of all faces together;
//! others wait in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};
use crate::memory;

/// Maximum number of conversions that wait, for each one that may run.
const WAITING: usize = 32;

static QUEUE: LazyLock<ConversionQueue> =
    LazyLock::new(|| ConversionQueue::new(thread::available_parallelism().map_or(1, usize::from)));

/// Place of a conversion. It must be held until the work has ended, also if nobody waits for the
/// result any more.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub struct ConversionPlace(Option<OwnedSemaphorePermit>);

impl ConversionPlace {
    /// Waits for a place, first in, first out. The holder of a place must not wait for another.
    ///
    /// # Errors
    ///
    /// [`Error::Conversions`] if too many wait already.
    pub async fn take() -> Result<Self> {
        QUEUE.take().await
    }

    /// Returns the number of conversions that run now.
    pub fn running() -> usize {
        QUEUE.running()
    }
}

impl Drop for ConversionPlace {
    fn drop(&mut self) {
        drop(self.0.take());
        memory::settle();
    }
}

/// Conversions that run and wait.
#[derive(Debug)]
struct ConversionQueue {
    places: usize,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl ConversionQueue {
    fn new(places: usize) -> Self {
        Self {
            places,
            free: Arc::new(Semaphore::new(places)),
            waiting: AtomicUsize::new(0),
        }
    }

    fn running(&self) -> usize {
        self.places.saturating_sub(self.free.available_permits())
    }

    async fn take(&self) -> Result<ConversionPlace> {
        // Nobody is passed: the semaphore has no free permit while somebody waits.
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(ConversionPlace(Some(permit)));
        }
        let limit = self.places * WAITING;
        let _waits = WaitingGuard::enter(&self.waiting, limit)?;
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await;
        Ok(ConversionPlace(permit.ok()))
    }
}

/// One that waits.
struct WaitingGuard<'a>(&'a AtomicUsize);

impl<'a> WaitingGuard<'a> {
    fn enter(waiting: &'a AtomicUsize, limit: usize) -> Result<Self> {
        if waiting.fetch_add(1, Ordering::AcqRel) >= limit {
            waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(Error::Conversions { limit });
        }
        Ok(Self(waiting))
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;
    use crate::error::{Blame, Retry};

    #[tokio::test]
    async fn conversions_run_at_most_as_many_at_a_time_as_there_are_places_and_all_get_one() {
        let queue = ConversionQueue::new(3);
        let most = AtomicUsize::new(0);
        let work = (0..40).map(|_| async {
            let _place = queue.take().await.unwrap();
            most.fetch_max(queue.running(), Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
        });
        join_all(work).await;
        assert_eq!(most.into_inner(), 3);
        assert_eq!((queue.running(), queue.waiting.into_inner()), (0, 0));
    }

    #[tokio::test]
    async fn a_full_queue_rejects_with_a_time_to_come_back_and_frees_the_place_of_one_that_leaves() {
        let queue = ConversionQueue::new(1);
        let running = queue.take().await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(queue.take())).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        let full = queue.take().await.unwrap_err();
        assert_eq!(full.blame(), Blame::Capacity);
        assert_eq!(full.retry(), Retry::After(Duration::from_secs(1)));
        assert!(full.to_string().contains("32"), "{full}");
        waiting.pop();
        let mut last = Box::pin(queue.take());
        assert!(last.as_mut().now_or_never().is_none());
        drop(running);
        // The first in line is the first to run.
        assert!(last.as_mut().now_or_never().is_none());
        drop(waiting.swap_remove(0).await.unwrap());
    }
}
