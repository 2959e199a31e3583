//! Why a server gave nothing, in words for a model, and the cause for the operator's log.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::ToolServerError;

use super::words;

/// What caused a failure. Several calls can fail of one cause.
type Cause = Arc<dyn Error + Send + Sync>;

/// Why a server gave nothing. Its message goes on from the server's name.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// No program, or none that may be started.
    #[error("could not be started; its operator finds the reason in the log, go on without it")]
    NotStarted(#[source] Cause),
    /// No connection.
    #[error("cannot be reached; go on without it, or try again later")]
    Unreachable(#[source] Option<Cause>),
    /// It ended.
    #[error("ended {when}; it is started again when it is used next")]
    Ended {
        /// What was under way.
        when: &'static str,
        #[source]
        source: Option<Cause>,
    },
    /// It said nothing.
    #[error("{what} within {} s, the limit `{limit}`; {repair}", time.as_secs_f64())]
    Silent {
        what: String,
        time: Duration,
        limit: &'static str,
        repair: &'static str,
    },
    /// It said too much.
    #[error("answered with {}; ask for less, such as fewer rows or columns", size(*limit, *actual))]
    TooLarge { limit: u64, actual: Option<u64> },
    /// Its answer has too many parts.
    #[error("answered with JSON of more than {limit} values; ask for less, such as fewer rows or columns")]
    TooMany { limit: u64 },
    /// Its answer has parts in parts in parts.
    #[error("answered with JSON that is nested more than {limit} levels deep; ask for something flatter")]
    TooDeep { limit: usize },
    /// It said what means nothing.
    #[error("sent what is no message of the Model Context Protocol: {what}")]
    Malformed {
        what: String,
        #[source]
        source: Option<Cause>,
    },
    /// It asks things of its client without reading the answers.
    #[error("asked its client {limit} things at once without waiting for an answer; it was cut off")]
    Asking { limit: usize },
    /// It does not read.
    #[error("does not read what it is sent: {limit} messages wait for it")]
    Deaf { limit: usize },
    /// It answered with a status instead of a message.
    #[error("answered with the HTTP status {status}{}", hint(*status))]
    Status { status: u16 },
    /// It refused a request in words of its own.
    #[error("refused: {message} (code {code})")]
    Refused { code: i32, message: String },
    /// It wants what there is not here.
    #[error("{what}")]
    Unsupported { what: String },
    /// It failed a short time ago.
    #[error("{last} (that was {} s ago; it is tried again in {} s)", since.as_secs(), left.as_secs() + 1)]
    Waiting {
        last: Box<Failure>,
        since: Duration,
        left: Duration,
    },
}

impl Failure {
    /// A message that is none.
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed {
            what: what.into(),
            source: None,
        }
    }

    /// A message that cannot be read.
    pub(super) fn unread(what: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Malformed {
            what: what.into(),
            source: Some(Arc::new(source)),
        }
    }

    /// What is told of a server.
    pub(super) fn of(self, label: &str) -> ToolServerError {
        let message = format!("the server `{}` {self}", words::told(label, 100));
        let mut causes = Vec::new();
        let failed = match &self {
            Self::Waiting { last, .. } => last,
            failure => failure,
        };
        let mut cause = failed.source();
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        let error = ToolServerError::new(message);
        if causes.is_empty() {
            error
        } else {
            error.caused_by(causes.join(": "))
        }
    }
}

fn size(limit: u64, actual: Option<u64>) -> String {
    let limit = words::bytes(limit);
    match actual {
        Some(actual) => format!("{actual} bytes, of which {limit} are the most"),
        None => format!("more than {limit}, which are the most"),
    }
}

const fn hint(status: u16) -> &'static str {
    match status {
        300..=399 => ", which leads elsewhere; its operator has to write the address that it leads to",
        401 | 403 => "; its operator has to give it other credentials",
        404 | 405 => "; its operator has to correct its address",
        429 => "; ask again later",
        500.. => "; try again later, or go on without it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_server_the_limit_and_the_repair_but_not_the_cause() {
        let missing = std::io::Error::other("no such file `/opt/secret/server`");
        let error = Failure::NotStarted(Arc::new(missing)).of("we\nather");
        assert_eq!(
            error.to_string(),
            "the server `we ather` could not be started; its operator finds the reason in the log, go on without it"
        );
        assert_eq!(
            error.source().unwrap().to_string(),
            "no such file `/opt/secret/server`"
        );
        let told = |failure: Failure| failure.of("w").to_string();
        let (limit, actual) = (32 << 20, Some(200 << 20));
        assert_eq!(
            told(Failure::TooLarge { limit, actual }),
            "the server `w` answered with 209715200 bytes, of which 32 MiB are the most; ask for less, such as fewer rows or columns"
        );
        assert_eq!(
            told(Failure::TooLarge { limit, actual: None }),
            "the server `w` answered with more than 32 MiB, which are the most; ask for less, such as fewer rows or columns"
        );
        let waiting = Failure::Waiting {
            last: Box::new(Failure::Status { status: 503 }),
            since: Duration::from_secs(3),
            left: Duration::from_millis(4500),
        };
        assert_eq!(
            told(waiting),
            "the server `w` answered with the HTTP status 503; try again later, or go on without it (that was 3 s ago; it is tried again in 5 s)"
        );
    }
}
