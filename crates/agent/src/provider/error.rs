//! Why a provider gave no answer, or not the whole.

use std::time::Duration;

/// How servers say that a conversation is too long.
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

/// What went wrong at a provider. Messages never hold its key.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The request cannot be sent as it is.
    #[error("prepare the request to the provider: {message}")]
    Request {
        /// What is wrong with it.
        message: String,
    },
    /// The request has a parameter that its API does not have.
    #[error("{message}")]
    Unsupported {
        /// The parameter.
        param: &'static str,
        /// Suggested fix.
        message: String,
    },
    /// It cannot be reached, or the connection broke.
    #[error("reach the provider; is it running, and its address right?")]
    Connection(#[source] reqwest::Error),
    /// It said nothing for too long.
    #[error("wait for the provider: {waited} after {limit:?}; raise the timeout if the model is slow")]
    Timeout {
        /// What was waited for.
        waited: &'static str,
        /// How long.
        limit: Duration,
    },
    /// It refused.
    #[error("ask the provider: status {status}: {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// In its words, shortened.
        message: String,
        /// When to try again, as it says.
        retry_after: Option<Duration>,
    },
    /// It reported an error in the middle of its answer.
    #[error("read the provider's answer: it reports: {message}")]
    Reported {
        /// In its words, shortened.
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
        /// What is wrong with it.
        what: String,
    },
    /// Something in the answer is larger than allowed.
    #[error("read the provider's answer: {what} has more than the {limit} bytes that are allowed")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The most bytes that are allowed.
        limit: usize,
    },
}

impl ProviderError {
    /// Whether another try may help, as long as nothing of the answer was used.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection(error) => !error.is_builder(),
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529),
            _ => false,
        }
    }

    /// Whether the conversation is longer than the model reads. Servers agree on no code for it, so their words count as well.
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
