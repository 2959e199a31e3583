//! The form of an error on a connection.

use std::time::Duration;

use cellblock_protocol::text::or_space;
use serde::{Deserialize, Serialize};

use crate::error::RemoteError;
use cellblock_sandbox::Error;
use cellblock_sandbox::error::{Blame, Effect, Retry};

/// Maximum length of a reason in characters.
const REASON: usize = 2000;

/// The error with which a server rejects a client's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRefusal {
    blame: Word,
    /// Seconds after which it may be retried, if it may; 0 means immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<u64>,
    /// Whether the sandbox is lost.
    #[serde(default)]
    destroys: bool,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Caller,
    Policy,
    Capacity,
    Backend,
    Internal,
}

impl RemoteRefusal {
    /// Creates one from the party that has to act, whether it may be retried, and the reason for
    /// the peer's caller.
    pub fn new(blame: Blame, retry: Retry, reason: impl Into<String>) -> Self {
        Self {
            blame: match blame {
                Blame::Caller => Word::Caller,
                Blame::Policy => Word::Policy,
                Blame::Capacity => Word::Capacity,
                Blame::Backend => Word::Backend,
                Blame::Internal => Word::Internal,
            },
            again: match retry {
                Retry::Never => None,
                Retry::Fresh => Some(0),
                Retry::After(pause) => Some(pause.as_secs().max(1)),
            },
            destroys: false,
            reason: told(&reason.into()),
        }
    }

    /// Rejects an invalid request of the client.
    pub(super) fn request(reason: impl Into<String>) -> Self {
        Self::new(Blame::Caller, Retry::Never, reason)
    }

    /// Converts it to an error on this side.
    pub(super) fn into_error(self, action: &'static str) -> Error {
        RemoteError::Refused {
            action,
            blame: match self.blame {
                Word::Caller => Blame::Caller,
                Word::Policy => Blame::Policy,
                Word::Capacity => Blame::Capacity,
                Word::Backend => Blame::Backend,
                Word::Internal => Blame::Internal,
            },
            retry: match self.again {
                None => Retry::Never,
                Some(0) => Retry::Fresh,
                // Limits the delay, in case the peer says "next year".
                Some(pause) => Retry::After(Duration::from_secs(pause.min(60))),
            },
            destroys: self.destroys,
            reason: told(&self.reason),
        }
        .into()
    }
}

impl From<Error> for RemoteRefusal {
    fn from(error: Error) -> Self {
        Self {
            destroys: error.effect() == Effect::Destroys,
            ..Self::new(
                error.blame(),
                error.retry(),
                cellblock_sandbox::jail::error::chain(&error),
            )
        }
    }
}

/// Returns a reason without control characters and of limited length.
pub(super) fn told(reason: &str) -> String {
    reason.chars().map(or_space).take(REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_means_the_same_on_the_other_side() {
        let error = Error::gone("guest");
        let (blame, retry, effect) = (error.blame(), error.retry(), error.effect());
        let there = RemoteRefusal::from(error).into_error("end a sandbox");
        assert_eq!(
            there.to_string(),
            "the remote could not end a sandbox: the guest is gone"
        );
        assert_eq!(
            (there.blame(), there.retry(), there.effect()),
            (blame, retry, effect)
        );
    }

    #[test]
    fn a_reason_is_short_and_visible() {
        let refusal = RemoteRefusal::request(format!("a\u{1b}[2Jb{}", "x".repeat(5000)));
        let shown = refusal.into_error("make a sandbox").to_string();
        assert!(
            shown.starts_with("the remote could not make a sandbox: a [2Jbxx"),
            "{shown}"
        );
        assert!(shown.len() < 2100, "{}", shown.len());
    }
}
