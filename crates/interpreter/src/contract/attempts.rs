//! How often a model may try before the tool is taken away.

use super::codes::ATTEMPTS_EXHAUSTED;
use super::wording::count;
use crate::rejection::Rejection;

/// Failures since the last success, and how many there may be.
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
    /// Attempts in a row, unless configured otherwise.
    pub const MAX: u32 = 5;

    /// So many attempts in a row.
    pub const fn new(max: u32) -> Self {
        Self { max, failed: 0 }
    }

    /// How many attempts are left.
    pub const fn left(&self) -> u32 {
        self.max.saturating_sub(self.failed)
    }

    /// How many there may be in a row.
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// Why the next call is refused before Python starts; nothing while attempts are left.
    pub fn refusal(&self) -> Option<Rejection> {
        if self.left() > 0 {
            return None;
        }
        Some(Rejection {
            code: ATTEMPTS_EXHAUSTED.to_owned(),
            message: format!(
                "{} in a row failed, which is the limit, so nothing was run; do not call this tool again, answer with \
                 what there is, and tell the user what could not be derived",
                count(self.failed as usize, "attempt")
            ),
            ..Rejection::default()
        })
    }

    /// A call failed: it was rejected, or its code raised or ran into a limit.
    pub const fn fail(&mut self) {
        // What is refused because none are left was no attempt.
        if self.failed < self.max {
            self.failed += 1;
        }
    }

    /// All attempts are left again: a call kept its contract, or there is something new to derive from.
    pub const fn renew(&mut self) {
        self.failed = 0;
    }

    /// What a failed call's answer says beside its mistakes.
    pub fn notice(&self) -> String {
        match self.left() {
            0 => "no attempts left: do not call this tool again, answer with what there is".to_owned(),
            left => format!(
                "{} left; repair the call and try again",
                count(left as usize, "attempt")
            ),
        }
    }
}
