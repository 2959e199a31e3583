//! Reason that a server that keeps nothing did not run code, or that it is unknown whether it did.

use std::time::Duration;

/// Error between the gateway and the server. Code that fails is none of these.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteServerError {
    /// The address, the key or the request cannot be used.
    #[error("{0}")]
    Request(String),
    /// No connection: nothing was sent.
    #[error("connect to the execution server: {reason}")]
    Unreachable {
        /// Reason.
        reason: String,
    },
    /// The connection ended before the answer was whole. The code may have run.
    #[error("the execution server's answer was cut off: {reason}; the code may have run")]
    Cut {
        /// Reason.
        reason: String,
    },
    /// It runs as much as it can.
    #[error("the execution server is at capacity (HTTP 429): {reason}")]
    Busy {
        /// In its words.
        reason: String,
    },
    /// It refused or failed.
    #[error("the execution server answered with HTTP status {status}: {reason}")]
    Status {
        /// The status.
        status: u16,
        /// In its words.
        reason: String,
    },
    /// There was no whole answer in time. The code may have run.
    #[error("the execution server did not answer within {} s; the code may have run", limit.as_secs_f64())]
    Late {
        /// Time for which it was waited for.
        limit: Duration,
    },
    /// The answer is larger than is read.
    #[error(
        "the execution server's answer is larger than {limit} bytes; the code has run: print less, or \
         write smaller files"
    )]
    TooLarge {
        /// Bytes.
        limit: usize,
    },
    /// The response is invalid.
    #[error("the execution server returned an invalid result: {reason}")]
    Unread {
        /// Description of the problem.
        reason: String,
    },
    /// It says that it cannot run Python.
    #[error("the execution server is not ready: {reason}")]
    NotReady {
        /// Reason.
        reason: String,
    },
}

impl ExecuteServerError {
    /// Whether nothing can have run.
    pub const fn ran_nothing(&self) -> bool {
        match self {
            Self::Request(_)
            | Self::Unreachable { .. }
            | Self::Busy { .. }
            | Self::NotReady { .. }
            | Self::Status {
                status: 400..=499, ..
            } => true,
            Self::Cut { .. }
            | Self::Status { .. }
            | Self::Late { .. }
            | Self::TooLarge { .. }
            | Self::Unread { .. } => false,
        }
    }

    /// In words for the model, which name no address.
    pub fn told(&self) -> String {
        match self {
            Self::Request(reason) => format!("The code was not run: {reason}."),
            Self::Unreachable { .. } | Self::NotReady { .. } => {
                "The code was not run: the sandbox cannot be reached. Try again, or answer without it."
                    .to_owned()
            }
            Self::Busy { .. } => {
                "The code was not run: the sandbox is at capacity. Try again, or answer without it."
                    .to_owned()
            }
            Self::Status {
                status: 400..=499,
                reason,
            } => format!("The code was not run: the sandbox refused it: {reason}."),
            Self::Status { .. } => {
                "The sandbox failed, and whether the code ran is not known. Try again, or \
                 answer without it."
                    .to_owned()
            }
            Self::Cut { .. } | Self::Late { .. } => {
                "The sandbox gave no answer in time, and whether the code ran is not known. Try less, or \
                 answer without it."
                    .to_owned()
            }
            Self::TooLarge { limit } => format!(
                "The code ran, and what it gave is larger than {limit} bytes. Print less, or write \
                 smaller files."
            ),
            Self::Unread { .. } => {
                "The sandbox gave an answer that cannot be read, and whether the code ran is not known. \
                 Try again, or answer without it."
                    .to_owned()
            }
        }
    }
}
