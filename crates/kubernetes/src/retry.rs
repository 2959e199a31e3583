//! Repeating what the API server could not do now.

use std::time::Duration;

use kube::Error as KubeError;
use tokio::time::{Instant, sleep};

/// First pause, doubled each time.
const FIRST: Duration = Duration::from_millis(50);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum time for which a gateway that has its rights may be denied them: an API server that has just
/// started answers 403 until it has read all roles.
const ROLES: Duration = Duration::from_secs(10);
/// Time that remains when an attempt is not repeated.
const LAST: Duration = Duration::from_millis(1);

/// Pauses between attempts until a point in time.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    until: Instant,
}

impl Backoff {
    /// Starts with pauses that end at `until`.
    pub(crate) const fn until(until: Instant) -> Self {
        Self { next: FIRST, until }
    }

    /// Waits before another attempt; returns `false` without waiting if there is no time for one.
    pub(crate) async fn pause(&mut self, asked: Option<Duration>) -> bool {
        let pause = asked.unwrap_or_default().max(self.next).min(LONGEST);
        self.next = (self.next * 2).min(LONGEST);
        let left = self.until.saturating_duration_since(Instant::now());
        if left <= LAST {
            return false;
        }
        sleep(pause.min(left.saturating_sub(LAST))).await;
        true
    }
}

/// Returns whether an attempt may succeed later, and the pause that the server asks for: it is
/// overloaded, starting, or cannot be reached.
#[expect(
    clippy::option_option,
    reason = "whether it passes, and whether the server says when"
)]
pub(crate) fn passes(error: &KubeError) -> Option<Option<Duration>> {
    match error {
        KubeError::Api(status) if status.code == 429 || status.code >= 500 => {
            let seconds = status.details.as_ref().map_or(0, |it| it.retry_after_seconds);
            Some((seconds > 0).then(|| Duration::from_secs(seconds.into())))
        }
        KubeError::HyperError(_) | KubeError::Service(_) | KubeError::ReadEvents(_) => Some(None),
        _ => None,
    }
}

/// Returns the HTTP status that the API server answered with.
pub(crate) fn status(error: &KubeError) -> Option<u16> {
    match error {
        KubeError::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Since when an API server denies what it has granted before.
#[derive(Debug, Default)]
pub(crate) struct Denial(Option<Instant>);

impl Denial {
    /// [`passes`], where a denial passes for a while, too.
    #[expect(clippy::option_option, reason = "as `passes`")]
    pub(crate) fn passes(&mut self, error: &KubeError) -> Option<Option<Duration>> {
        if status(error) != Some(403) {
            return passes(error);
        }
        let since = self.0.get_or_insert_with(Instant::now);
        (since.elapsed() < ROLES).then_some(None)
    }
}

/// Attempts until it works, fails for good, or the time is over.
pub(crate) async fn retry<T, F>(until: Instant, attempt: impl FnMut() -> F) -> Result<T, KubeError>
where
    F: Future<Output = Result<T, KubeError>>,
{
    repeat(until, passes, attempt).await
}

/// [`retry`] of what the API server has granted before: a server that restarts denies it for a moment.
pub(crate) async fn retry_granted<T, F>(until: Instant, attempt: impl FnMut() -> F) -> Result<T, KubeError>
where
    F: Future<Output = Result<T, KubeError>>,
{
    let mut denial = Denial::default();
    repeat(until, |error| denial.passes(error), attempt).await
}

async fn repeat<T, F>(
    until: Instant,
    mut passes: impl FnMut(&KubeError) -> Option<Option<Duration>>,
    mut attempt: impl FnMut() -> F,
) -> Result<T, KubeError>
where
    F: Future<Output = Result<T, KubeError>>,
{
    let mut backoff = Backoff::until(until);
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let Some(asked) = passes(&error) else {
            return Err(error);
        };
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "asking the API server again"
        );
        if !backoff.pause(asked).await {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kube::core::Status;

    use super::*;

    fn answered(code: u16) -> KubeError {
        KubeError::Api(Box::new(Status {
            code,
            ..Status::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn only_overload_and_outages_are_repeated() {
        for (code, expected) in [
            (429, 3),
            (500, 3),
            (503, 3),
            (403, 1),
            (404, 1),
            (409, 1),
            (422, 1),
        ] {
            let attempts = Cell::new(0);
            let until = Instant::now() + Duration::from_mins(1);
            let _ = retry(until, || {
                attempts.set(attempts.get() + 1);
                let done = attempts.get() == 3;
                async move { if done { Ok(()) } else { Err(answered(code)) } }
            })
            .await;
            assert_eq!(attempts.get(), expected, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_of_what_was_granted_passes_for_a_while_and_then_lasts() {
        let attempts = Cell::new(0);
        let until = Instant::now() + Duration::from_mins(1);
        let done = retry_granted(until, || {
            attempts.set(attempts.get() + 1);
            let done = attempts.get() == 3;
            async move { if done { Ok(()) } else { Err(answered(403)) } }
        });
        done.await.unwrap();
        let began = Instant::now();
        let failed = retry_granted(until, || async { Err::<(), _>(answered(403)) }).await;
        assert_eq!(status(&failed.unwrap_err()), Some(403));
        assert!((ROLES..ROLES * 2).contains(&began.elapsed()));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_at_the_limit_with_the_last_error() {
        let began = Instant::now();
        let until = began + Duration::from_secs(7);
        let failed = retry(until, || async { Err::<(), _>(answered(503)) }).await;
        assert_eq!(status(&failed.unwrap_err()), Some(503));
        assert!(began.elapsed() <= Duration::from_secs(7));
    }
}
