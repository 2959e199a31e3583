//! Errors of a provider.

use std::time::Duration;

/// Words with which servers report that a conversation is too long.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
];

/// An error of a provider. Messages never contain its key.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The request cannot be sent as it is.
    #[error("prepare the request to the provider: {message}")]
    Request {
        /// The problem.
        message: String,
    },
    /// The request has a parameter that the provider's API lacks.
    #[error("{message}")]
    Unsupported {
        /// Name of the parameter.
        param: &'static str,
        /// Suggested fix.
        message: String,
    },
    /// The provider cannot be reached, or the connection broke.
    #[error("reach the provider; is it running, and its address right?")]
    Connection(#[source] reqwest::Error),
    /// The provider sent nothing for too long.
    #[error("wait for the provider: {waited} after {limit:?}; raise the timeout if the model is slow")]
    Timeout {
        /// The awaited event.
        waited: &'static str,
        /// Maximum duration.
        limit: Duration,
    },
    /// The provider rejected the request.
    #[error("ask the provider: status {status}: {message}")]
    Status {
        /// HTTP status.
        status: u16,
        /// The provider's message, shortened.
        message: String,
        /// Delay that the provider requests before a retry.
        retry_after: Option<Duration>,
    },
    /// The provider reported an error in the middle of its response.
    #[error("read the provider's answer: it reports: {message}")]
    Reported {
        /// The provider's message, shortened.
        message: String,
        /// Its word for programs.
        code: Option<String>,
    },
    /// The answer ended in the middle.
    #[error("read the provider's answer: it was cut off before its end")]
    Cut,
    /// The answer is not one.
    #[error("read the provider's answer: {what}")]
    Malformed {
        /// Description of the error.
        what: String,
    },
    /// The model wrote nothing where a summary was requested.
    #[error("the model wrote no summary of the conversation")]
    NoSummary,
    /// Something in the answer is larger than allowed.
    #[error("read the provider's answer: {what} has more than the {limit} bytes that are allowed")]
    TooLarge {
        /// Name of the value that is too large.
        what: &'static str,
        /// Maximum number of bytes that are allowed.
        limit: usize,
    },
}

impl ProviderError {
    /// Returns whether a retry may help, as long as nothing of the response was used.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection(error) => !error.is_builder(),
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529),
            _ => false,
        }
    }

    /// Returns whether the conversation is too long for the model. Servers share no code for this,
    /// so their words are checked, too.
    pub fn is_too_long(&self) -> bool {
        let (message, code) = match self {
            Self::Status {
                status: 400 | 413 | 422 | 500,
                message,
                ..
            } => (message, None),
            Self::Reported { message, code } => (message, code.as_deref()),
            _ => return false,
        };
        let message = message.to_ascii_lowercase();
        code == Some("context_length_exceeded") || TOO_LONG.iter().any(|words| message.contains(words))
    }

    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into() }
    }
}
