//! Limit on a model's failed attempts before the tool is disabled.

use cellblock_protocol::text::counted;

use super::codes::ATTEMPTS_EXHAUSTED;
use crate::rejection::Rejection;

/// Failures since the last success, and their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    max: u32,
    failed: u32,
}

impl Default for Attempts {
    fn default() -> Self {
        Self::new(Self::MAX)
    }
}

impl Attempts {
    /// Default maximum of consecutive failed attempts.
    pub const MAX: u32 = 5;

    /// Creates a counter with this maximum of consecutive failed attempts.
    pub const fn new(max: u32) -> Self {
        Self { max, failed: 0 }
    }

    /// Returns the number of remaining attempts.
    pub const fn left(&self) -> u32 {
        self.max.saturating_sub(self.failed)
    }

    /// Returns the maximum number of consecutive failed attempts.
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// Returns why the next call is rejected before Python starts; nothing while attempts remain.
    pub fn refusal(&self) -> Option<Rejection> {
        if self.left() > 0 {
            return None;
        }
        Some(Rejection {
            code: ATTEMPTS_EXHAUSTED.to_owned(),
            message: format!(
                "{} in a row failed, which is the limit, so nothing was run; do not call this tool again, \
                 answer with what there is, and tell the user what could not be derived",
                counted(self.failed, "attempt")
            ),
            ..Rejection::default()
        })
    }

    /// Records a failed call: it was rejected, or its code raised or exceeded a limit.
    pub const fn fail(&mut self) {
        // A call that is rejected because no attempts remain does not count.
        if self.failed < self.max {
            self.failed += 1;
        }
    }

    /// Restores all attempts: a call kept its contract, or there is new data to derive from.
    pub const fn renew(&mut self) {
        self.failed = 0;
    }

    /// Returns a note to add to the mistakes of a failed call.
    pub fn notice(&self) -> String {
        match self.left() {
            0 => "no attempts left: do not call this tool again, answer with what there is".to_owned(),
            left => format!("{} left; repair the call and try again", counted(left, "attempt")),
        }
    }
}
