//! Waiting for what tells nobody that it has happened: a test asks again and again, for much longer
//! than it takes.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait of a test, on a machine that may download and emulate other things meanwhile.
const PATIENCE: Duration = Duration::from_mins(3);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until something is so, and lets other tasks run meanwhile.
///
/// # Panics
///
/// Panics with `what` if it is not so within three minutes.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_ok(async || told(what, is_so())).await;
}

/// Asks until the answer is good, and gives it.
///
/// # Panics
///
/// Panics with the last error if there is no good answer within three minutes.
pub async fn until_ok<T, E: Display>(mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => check(begun, &error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// [`until`] for a test without a runtime.
///
/// # Panics
///
/// Panics with `what` if it is not so within three minutes.
pub fn block_until(what: &str, mut is_so: impl FnMut() -> bool) {
    block_until_ok(|| told(what, is_so()));
}

/// [`until_ok`] for a test without a runtime.
///
/// # Panics
///
/// Panics with the last error if there is no good answer within three minutes.
pub fn block_until_ok<T, E: Display>(mut ask: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => check(begun, &error),
        }
        thread::sleep(PAUSE);
    }
}

fn told(what: &str, is_so: bool) -> Result<(), &str> {
    if is_so { Ok(()) } else { Err(what) }
}

fn check(begun: Instant, last: &dyn Display) {
    assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {last}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_asked_for_is_asked_until_it_is_so() {
        let mut asked = 0;
        let mut ask = || {
            asked += 1;
            asked > 2
        };
        until("three", &mut ask).await;
        block_until("three", &mut ask);
        assert_eq!(asked, 4);
        let mut left = 2;
        let answer = until_ok(async || {
            left -= 1;
            if left == 0 { Ok("answer") } else { Err("not yet") }
        });
        assert_eq!(answer.await, "answer");
    }

    #[test]
    #[should_panic(expected = "not within 180s: the moon")]
    fn what_never_comes_fails_the_test() {
        let long_ago = Instant::now().checked_sub(PATIENCE).unwrap();
        check(long_ago, &"the moon");
    }
}
