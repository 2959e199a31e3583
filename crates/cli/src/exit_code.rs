//! Meanings of the exit codes of `cellblock`.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | the code completed |
//! | 1 | the code raised an exception |
//! | 2 | the code was rejected, or the request or the command line is invalid |
//! | 70 | the sandbox or its backend failed |
//! | 75 | no sandbox became available in time; try again later |
//! | 78 | the policy requires a protection that this machine lacks |
//! | 124 | the code timed out or was interrupted; its variables are kept |
//! | 125 | the kernel was lost, or the code exceeded a limit |
//! | 130 | Ctrl-C ended `cellblock` itself |

use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::Outcome;
use serde::{Deserialize, Serialize};

/// The exit codes. Their numbers are an interface: scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum ExitCode {
    Success = 0,
    Raised = 1,
    Refused = 2,
    Backend = 70,
    Capacity = 75,
    Policy = 78,
    Interrupted = 124,
    Lost = 125,
    Cancelled = 130,
}

impl ExitCode {
    /// The code for how a cell ended.
    pub(crate) const fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Success,
            Outcome::Raised => Self::Raised,
            Outcome::Rejected { .. } => Self::Refused,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::KernelLost { .. } | Outcome::LimitExceeded(_) => Self::Lost,
        }
    }

    /// The code for work that could not be done.
    pub(crate) const fn of_blame(blame: Blame) -> Self {
        match blame {
            Blame::Caller => Self::Refused,
            Blame::Policy => Self::Policy,
            Blame::Capacity => Self::Capacity,
            Blame::Backend | Blame::Internal => Self::Backend,
        }
    }

    /// The code's name in `--json` errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Raised => "raised",
            Self::Refused => "bad_request",
            Self::Backend => "backend",
            Self::Capacity => "capacity",
            Self::Policy => "policy",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use cellblock_interpreter::execution::{LimitExcess, Resource};

    use super::*;

    #[test]
    fn every_outcome_has_the_code_of_the_table() {
        let exceeded = LimitExcess {
            which: Resource::Memory,
            limit: 1,
            actual: 2,
            kernel_lost: true,
        };
        for (outcome, code) in [
            (Outcome::Completed, 0),
            (Outcome::Raised, 1),
            (
                Outcome::Rejected {
                    rejections: Vec::new(),
                },
                2,
            ),
            (Outcome::Interrupted, 124),
            (
                Outcome::KernelLost {
                    reason: String::new(),
                },
                125,
            ),
            (Outcome::LimitExceeded(exceeded), 125),
        ] {
            assert_eq!(ExitCode::of_outcome(&outcome) as u8, code, "{outcome:?}");
            assert_eq!(outcome.exit_code(), code, "{outcome:?}");
        }
    }

    #[test]
    fn every_blame_has_the_code_of_the_table() {
        for (blame, code) in [
            (Blame::Caller, 2),
            (Blame::Policy, 78),
            (Blame::Capacity, 75),
            (Blame::Backend, 70),
            (Blame::Internal, 70),
        ] {
            assert_eq!(ExitCode::of_blame(blame) as u8, code, "{blame:?}");
        }
    }
}
