//! What a client may read of a session's failure.

use cellblock_interpreter::Error;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::session::processes::ProcessError;

/// A session's failure in words that contain no path of the host; those stay in the log.
#[derive(Debug)]
pub(crate) struct SessionFault {
    /// Its kind.
    pub(crate) kind: SessionFaultKind,
    /// The message.
    pub(crate) message: String,
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionFaultKind {
    /// The session has ended.
    Ended,
    /// There is no such file or process.
    Missing,
    /// The client can repair its request.
    Request,
    /// There is no capacity now.
    Capacity,
    /// The sandbox failed.
    Sandbox,
    /// This server failed.
    Server,
}

impl From<Error> for SessionFault {
    fn from(error: Error) -> Self {
        let new = |kind, message: &str| Self {
            kind,
            message: message.to_owned(),
        };
        if matches!(error, Error::Closed) {
            return new(
                SessionFaultKind::Ended,
                "the sandbox has ended; create another one",
            );
        }
        if let Error::Process(error) = &error {
            let missing = matches!(error, ProcessError::NotFound { .. } | ProcessError::Lost { .. });
            let kind = if missing {
                SessionFaultKind::Missing
            } else {
                SessionFaultKind::Request
            };
            return new(kind, &error.to_string());
        }
        let log = &error as &dyn std::error::Error;
        match (error.blame(), error.refusal()) {
            (Blame::Caller, Some(("not_found", _))) => new(SessionFaultKind::Missing, &error.to_string()),
            (Blame::Caller, _) => new(SessionFaultKind::Request, &error.to_string()),
            (Blame::Capacity, _) => {
                tracing::warn!(error = log, "no sandbox in time");
                new(
                    SessionFaultKind::Capacity,
                    "no sandbox became available in time; try again later",
                )
            }
            (Blame::Backend, _) => {
                tracing::error!(error = log, "a sandbox failed");
                new(
                    SessionFaultKind::Sandbox,
                    "the sandbox failed and was destroyed, with its variables and files",
                )
            }
            (Blame::Policy | Blame::Internal, _) => {
                tracing::error!(error = log, "serve a request of a dialect");
                new(SessionFaultKind::Server, "the server failed; its log says why")
            }
        }
    }
}
