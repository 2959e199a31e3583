//! A call with events for dashboards: it ends exactly once, even if it is canceled.

use std::time::Instant;

/// Events of a failed call; each kind of call has its own.
pub trait WatchedCall {
    /// Stages at which it can be, and fail.
    type Stage: Copy;

    /// It was given up.
    const CANCELLED: Self::Stage;

    /// Tells that it failed.
    fn failed(&self, failure: WatchedFailure<'_, Self::Stage>);
}

/// Failure of a call.
#[derive(Clone, Copy, Debug)]
pub struct WatchedFailure<'a, S> {
    /// Stage that failed.
    pub stage: S,
    /// The stage in which the call was.
    pub reached: S,
    /// Milliseconds since the start, to the thousandth.
    pub duration_ms: f64,
    /// The reason in our own words: neither cut nor escaped.
    pub message: &'a str,
}

/// A call that is under way. Dropped without an end, it tells that the call was cancelled.
#[derive(Debug)]
#[must_use = "dropping it tells that the call was cancelled"]
pub struct CallWatch<C: WatchedCall> {
    call: C,
    begun: Instant,
    reached: C::Stage,
    ended: bool,
}

impl<C: WatchedCall> CallWatch<C> {
    /// A call that starts, in its first stage.
    pub fn start(call: C, reached: C::Stage) -> Self {
        Self {
            call,
            begun: Instant::now(),
            reached,
            ended: false,
        }
    }

    /// Notes how far the call is.
    pub fn reached(&mut self, stage: C::Stage) {
        self.reached = stage;
    }

    /// Ends it well: tells so, with the milliseconds since the start, to the thousandth.
    pub fn succeed(mut self, tell: impl FnOnce(&C, f64)) {
        self.ended = true;
        tell(&self.call, self.duration_ms());
    }

    /// Tells that the call failed where it was.
    pub fn fail(mut self, message: &str) {
        self.failure(self.reached, message);
    }

    fn failure(&mut self, stage: C::Stage, message: &str) {
        self.ended = true;
        self.call.failed(WatchedFailure {
            stage,
            reached: self.reached,
            duration_ms: self.duration_ms(),
            message,
        });
    }

    fn duration_ms(&self) -> f64 {
        (self.begun.elapsed().as_secs_f64() * 1_000_000.0).round() / 1000.0
    }
}

impl<C: WatchedCall> Drop for CallWatch<C> {
    fn drop(&mut self) {
        if !self.ended {
            let why = if std::thread::panicking() {
                "the host panicked"
            } else {
                "the call was cancelled"
            };
            self.failure(C::CANCELLED, why);
        }
    }
}
