//! Errors between two Cellblocks, and their meaning for a caller.

use std::time::Duration;

use cellblock_sandbox::Error;
use cellblock_sandbox::error::{Blame, Effect, Retry};

/// A failure of a connection, or of its server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("connect to the sandboxes at `{address}`: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("connect to the sandboxes at `{address}`: it returned HTTP status {status}{hint}")]
    Status {
        address: String,
        status: u16,
        hint: &'static str,
    },
    #[error(
        "the connection to {} was lost: {reason}; the sandbox has ended",
        process.as_deref().unwrap_or("the other side")
    )]
    Lost {
        /// Name of the other process, if it is one of this machine.
        process: Option<String>,
        reason: String,
    },
    #[error("the remote could not {action}: {reason}")]
    Refused {
        action: &'static str,
        blame: Blame,
        retry: Retry,
        destroys: bool,
        reason: String,
    },
}

/// Returns the error for a process of this machine, named `address`, that cannot be reached.
pub fn unreachable(address: &str, reason: impl std::fmt::Display) -> Error {
    let address = address.to_owned();
    let reason = reason.to_string();
    RemoteError::Unreachable { address, reason }.into()
}

impl RemoteError {
    fn blame(&self) -> Blame {
        match self {
            Self::Status {
                status: 401 | 403, ..
            } => Blame::Policy,
            Self::Status {
                status: 429 | 503, ..
            } => Blame::Capacity,
            Self::Unreachable { .. } | Self::Status { .. } | Self::Lost { .. } => Blame::Backend,
            Self::Refused { blame, .. } => *blame,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Lost { .. } => Retry::Fresh,
            Self::Status { status, .. } if !matches!(status, 429 | 500..) => Retry::Never,
            // Connecting was already retried.
            Self::Unreachable { .. } | Self::Status { .. } => Retry::After(Duration::from_secs(1)),
            Self::Refused { retry, .. } => *retry,
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Self::Lost { .. } | Self::Refused { destroys: true, .. } => Effect::Destroys,
            Self::Unreachable { .. } | Self::Status { .. } | Self::Refused { .. } => Effect::None,
        }
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        Self::of_backend(error.blame(), error.retry(), error.effect(), error)
    }
}

/// Returns the HTTP status with which a server rejected the sandbox protocol, if that was the
/// error.
pub fn http_status(error: &Error) -> Option<u16> {
    match error.backend_error()? {
        RemoteError::Status { status, .. } => Some(*status),
        _ => None,
    }
}

/// Returns the name of the other process of this machine that had the sandbox, if its loss was the
/// error.
pub fn lost_process(error: &Error) -> Option<&str> {
    match error.backend_error()? {
        RemoteError::Lost { process, .. } => process.as_deref(),
        _ => None,
    }
}

pub(crate) fn is_unreachable(error: &Error) -> bool {
    matches!(error.backend_error(), Some(RemoteError::Unreachable { .. }))
}

pub(crate) fn is_lost(error: &Error) -> bool {
    matches!(error.backend_error(), Some(RemoteError::Lost { .. }))
}
