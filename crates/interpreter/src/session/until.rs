//! Interrupting work until it ends.

use std::time::Duration;

use tokio::time::sleep;

/// Time between two interrupts. An interrupt stops one request to a session; work that was between
/// two of them, or before the first, did not notice it.
const AGAIN: Duration = Duration::from_millis(250);

/// Drives work to its end. Once `cancel` completes, calls `interrupt` again and again until the work ends.
pub async fn until<T>(
    interrupt: impl Fn(),
    cancel: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> T {
    // Boxed, so that a future that waits for work of any size is small.
    let mut work = Box::pin(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = cancel => {}
    }
    loop {
        interrupt();
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = sleep(AGAIN) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn, ready};
    use std::task::Poll;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_without_a_cancellation_is_not_interrupted() {
        let done = until(|| panic!("interrupted"), pending(), async {
            sleep(AGAIN * 10).await;
            7
        });
        assert_eq!(done.await, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_interrupted_again_until_it_notices() {
        let interrupts = Cell::new(0);
        let interrupt = || interrupts.set(interrupts.get() + 1);
        let work = async {
            sleep(AGAIN * 4).await;
            let deaf_until_now = interrupts.get();
            // Polled whenever an interrupt has been sent.
            poll_fn(|_| match interrupts.get() {
                now if now > deaf_until_now => Poll::Ready(()),
                _ => Poll::Pending,
            })
            .await;
        };
        let cancel = sleep(AGAIN * 2);
        until(interrupt, cancel, work).await;
        assert_eq!(interrupts.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_has_ended_is_not_interrupted_when_it_is_canceled() {
        until(|| panic!("interrupted"), ready(()), ready(())).await;
    }
}
