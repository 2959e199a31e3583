//! Failures of a server, in words for a model, with the cause for the operator's log.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::ToolServerError;

use super::words;

/// Cause of a failure, which several calls can share.
type Cause = Arc<dyn Error + Send + Sync>;

/// A failure of a server. Its message continues a sentence that starts with the server's name.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The program is missing or could not be started.
    #[error("could not be started (the operator's log has the reason); continue without it")]
    NotStarted(#[source] Cause),
    /// The server cannot be reached.
    #[error("cannot be reached; continue without it, or try again later")]
    Unreachable(#[source] Option<Cause>),
    /// The server exited or closed the connection.
    #[error("exited {when}; it is started again for the next call")]
    Ended {
        /// The point at which it ended.
        when: &'static str,
        #[source]
        source: Option<Cause>,
    },
    /// The server did not respond in time.
    #[error("{what} within {} s, the limit `{limit}`; {repair}", time.as_secs_f64())]
    Silent {
        what: String,
        time: Duration,
        limit: &'static str,
        repair: &'static str,
    },
    /// The response is too large.
    #[error("returned {}; request less, such as fewer rows or columns", size(*limit, *actual))]
    TooLarge { limit: u64, actual: Option<u64> },
    /// The response has too many values.
    #[error("returned JSON with more than {limit} values; request less, such as fewer rows or columns")]
    TooMany { limit: u64 },
    /// The response is nested too deeply.
    #[error("returned JSON that is nested more than {limit} levels deep; request something flatter")]
    TooDeep { limit: usize },
    /// The message is invalid.
    #[error("sent an invalid message of the Model Context Protocol: {what}")]
    Malformed {
        what: String,
        #[source]
        source: Option<Cause>,
    },
    /// The server sends requests to its client without reading the responses.
    #[error("sent its client {limit} requests at once without reading a response; it was disconnected")]
    Asking { limit: usize },
    /// The server does not read.
    #[error("does not read its messages: {limit} are waiting")]
    Deaf { limit: usize },
    /// The server returned an HTTP error status.
    #[error("returned HTTP status {status}{}", hint(*status, *retry_after))]
    Status {
        status: u16,
        /// Time until the server permits another request.
        retry_after: Option<Duration>,
    },
    /// The server rejected a request.
    #[error("rejected the request: {message} (code {code})")]
    Refused { code: i32, message: String },
    /// The server requires something that is not supported here.
    #[error("{what}")]
    Unsupported { what: String },
    /// The server failed a short time ago.
    #[error("{last} (that was {} s ago; it is tried again in {} s)", since.as_secs(), left.as_secs() + 1)]
    Waiting {
        last: Box<Failure>,
        since: Duration,
        left: Duration,
    },
}

impl Failure {
    /// Creates an error for an HTTP status alone.
    pub(super) const fn status(status: u16) -> Self {
        Self::Status {
            status,
            retry_after: None,
        }
    }

    /// Creates an error for an invalid message.
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed {
            what: what.into(),
            source: None,
        }
    }

    /// Creates an error for an unreadable message.
    pub(super) fn unread(what: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Malformed {
            what: what.into(),
            source: Some(Arc::new(source)),
        }
    }

    /// Formats the failure of a server.
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
        Some(actual) => format!("{actual} bytes, the limit is {limit}"),
        None => format!("more than the limit of {limit}"),
    }
}

fn hint(status: u16, retry_after: Option<Duration>) -> String {
    if let (429 | 500.., Some(time)) = (status, retry_after) {
        return format!("; try again in {} s", time.as_secs());
    }
    let hint = match status {
        300..=399 => ", a redirect; its operator must configure the address that it leads to",
        401 | 403 => "; its operator must configure other credentials",
        404 | 405 => "; its operator must correct its address",
        429 => "; try again later",
        500.. => "; try again later, or continue without it",
        _ => "",
    };
    hint.to_owned()
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
            "the server `we ather` could not be started (the operator's log has the reason); continue \
             without it"
        );
        assert_eq!(
            error.source().unwrap().to_string(),
            "no such file `/opt/secret/server`"
        );
        let told = |failure: Failure| failure.of("w").to_string();
        let (limit, actual) = (32 << 20, Some(200 << 20));
        assert_eq!(
            told(Failure::TooLarge { limit, actual }),
            "the server `w` returned 209715200 bytes, the limit is 32 MiB; request less, such as fewer \
             rows or columns"
        );
        assert_eq!(
            told(Failure::TooLarge { limit, actual: None }),
            "the server `w` returned more than the limit of 32 MiB; request less, such as fewer \
             rows or columns"
        );
        let waiting = Failure::Waiting {
            last: Box::new(Failure::status(503)),
            since: Duration::from_secs(3),
            left: Duration::from_millis(4500),
        };
        assert_eq!(
            told(waiting),
            "the server `w` returned HTTP status 503; try again later, or continue without it (that was 3 \
             s ago; it is tried again in 5 s)"
        );
    }
}
