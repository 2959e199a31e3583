//! Failures of connectors, as code in a sandbox sees them.

use std::time::Duration;

use cellblock_protocol::CallError;
use serde_json::{Value, json};

use super::Redaction;

/// Maximum number of characters of a message.
const CHARS: usize = 2000;

/// A failure of a connector, in words for a model: the connector, the failed action, and how to continue.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    kind: ConnectorErrorKind,
    message: String,
}

/// Kind of a failure. Each is an exception of the module `cellblock` in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectorErrorKind {
    /// The far side rejected the operator's credentials.
    Unauthorized,
    /// The far side requires a payment.
    PaymentRequired,
    /// The far side limits the rate of requests.
    RateLimit {
        /// Time until another attempt, if known.
        retry_after: Option<Duration>,
    },
    /// The far side failed or cannot be reached.
    Provider {
        /// Its HTTP status, if any.
        status: Option<u16>,
    },
    /// There is no data for these arguments.
    EmptyData,
    /// The answer is malformed, or not of the declared type.
    Parse,
    /// The function or an argument is invalid.
    InvalidParameter,
    /// There was no answer in time.
    Timeout,
    /// The session does not have the connector.
    NotGranted,
}

impl ConnectorErrorKind {
    /// Returns the kind's name in logs and in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::PaymentRequired => "payment_required",
            Self::RateLimit { .. } => "rate_limit",
            Self::Provider { .. } => "provider",
            Self::EmptyData => "empty_data",
            Self::Parse => "parse",
            Self::InvalidParameter => "invalid_parameter",
            Self::Timeout => "timeout",
            Self::NotGranted => "not_granted",
        }
    }

    /// Returns the kind of a failed HTTP request, and when it may be tried again, if known.
    pub const fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            401 | 403 => Self::Unauthorized,
            402 => Self::PaymentRequired,
            429 => Self::RateLimit { retry_after },
            status => Self::Provider { status: Some(status) },
        }
    }
}

impl ConnectorError {
    /// Creates a failure. The message becomes one line, because code shows it as one.
    pub fn new(kind: ConnectorErrorKind, message: impl AsRef<str>) -> Self {
        let words = message.as_ref().split_whitespace();
        let line = words.collect::<Vec<_>>().join(" ");
        Self {
            kind,
            message: line.chars().take(CHARS).collect(),
        }
    }

    /// Returns the failure of a call, with the names of the connector and the function before its message.
    #[must_use]
    pub fn of_call(self, connector: &str, function: &str) -> Self {
        Self::new(self.kind, format!("{connector}.{function}: {}", self.message))
    }

    /// Returns its kind.
    pub const fn kind(&self) -> ConnectorErrorKind {
        self.kind
    }

    /// Returns after which time the call may succeed, if a rate limit is the reason and that is known.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ConnectorErrorKind::RateLimit { retry_after } => retry_after,
            _ => None,
        }
    }

    /// Creates a failure of the far side that has no HTTP status.
    pub fn provider(message: impl AsRef<str>) -> Self {
        Self::new(ConnectorErrorKind::Provider { status: None }, message)
    }

    pub(super) fn invalid(message: impl AsRef<str>) -> Self {
        Self::new(ConnectorErrorKind::InvalidParameter, message)
    }

    /// Returns the failure without secrets.
    pub(super) fn redacted(self, redaction: &Redaction) -> Self {
        Self {
            message: redaction.text(&self.message).into_owned(),
            ..self
        }
    }

    pub(super) fn to_call_error(&self) -> CallError {
        let details = match self.kind {
            ConnectorErrorKind::RateLimit {
                retry_after: Some(time),
            } => json!({"retry_after": time.as_secs_f64()}),
            ConnectorErrorKind::Provider { status: Some(status) } => json!({ "status": status }),
            _ => Value::Null,
        };
        CallError {
            code: self.kind.name().to_owned(),
            message: self.message.clone(),
            details,
        }
    }
}
