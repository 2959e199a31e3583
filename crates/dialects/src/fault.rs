//! Error around a session: its kind, a status, and words for the client. Each dialect has its own form for
//! it.

use axum::http::StatusCode;
use cellblock_interpreter::Error;
use cellblock_interpreter::artifact::is_disk_full;
use cellblock_interpreter::error::{Blame, Retry};
use cellblock_interpreter::hosting::HostingError;
use cellblock_interpreter::hosting::uploads::UploadError;
use cellblock_interpreter::session::ports::PortError;
use cellblock_interpreter::session::processes::ProcessError;

use crate::door::NoEntry;
use crate::host::DialectError;

/// Reason that a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialectFault {
    pub(crate) kind: DialectFaultKind,
    pub(crate) status: StatusCode,
    /// Message that its reader may see.
    pub(crate) message: String,
    /// Seconds after which the request may succeed.
    pub(crate) retry_after: Option<u64>,
}

/// Kind of a failure, and the status that it has unless the dialect's original has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialectFaultKind {
    /// There is no key, and one is needed; 401.
    NoKey,
    /// The key opens nothing; 401.
    WrongKey,
    /// The key may not be used here, or the operator's rules forbid it; 403.
    Forbidden,
    /// Nobody is let in now, or the server is stopping; 503.
    Unavailable,
    /// The caller has or runs as much as it may; 429.
    Quota,
    /// The upload took too long; 408.
    Timeout,
    /// The upload is too large; 413.
    TooLarge,
    /// The session has ended; 404.
    Ended,
    /// There is no such process; 404.
    Missing,
    /// There is no such file; 404.
    NoFile,
    /// The client can repair its request; 400.
    Request,
    /// The sandbox's disk is full; 400.
    Space,
    /// The server's disk is full; 507.
    StorageFull,
    /// Nobody listens on the port; 502.
    Port,
    /// There is no capacity now; 503.
    Capacity,
    /// The sandbox failed; 502.
    Sandbox,
    /// This server failed; 500.
    Server,
}

impl DialectFaultKind {
    const fn status(self) -> StatusCode {
        match self {
            Self::NoKey | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Unavailable | Self::Capacity => StatusCode::SERVICE_UNAVAILABLE,
            Self::Quota => StatusCode::TOO_MANY_REQUESTS,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Ended | Self::Missing | Self::NoFile => StatusCode::NOT_FOUND,
            Self::Request | Self::Space => StatusCode::BAD_REQUEST,
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::Port | Self::Sandbox => StatusCode::BAD_GATEWAY,
            Self::Server => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Its words, where those of the error may name what belongs to the host.
    const fn words(self) -> Option<&'static str> {
        match self {
            Self::Ended => Some("the sandbox has ended; create another one"),
            Self::Space => Some("not enough disk space available"),
            Self::StorageFull => {
                Some("the disk of the server's data folder is full; free space there, then try again")
            }
            Self::Capacity => Some("no sandbox became available in time; try again later"),
            Self::Sandbox => Some("the sandbox failed and was destroyed, with its variables and files"),
            Self::Server => Some("internal error; see the server's log"),
            _ => None,
        }
    }
}

impl DialectFault {
    /// One that a dialect words itself.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            kind: DialectFaultKind::Request,
            status,
            message: message.into(),
            retry_after: None,
        }
    }

    /// We failed; the log says how.
    pub(crate) fn internal(action: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, action, "a request of a dialect failed");
        let (kind, why) = if is_disk_full(error) {
            let why = ": the disk of the server's data folder is full; free space there, then try again";
            (DialectFaultKind::StorageFull, why)
        } else {
            (DialectFaultKind::Server, "; the server's log says why")
        };
        Self {
            kind,
            ..Self::new(kind.status(), format!("could not {action}{why}"))
        }
    }
}

impl<E: Into<DialectError>> From<E> for DialectFault {
    fn from(error: E) -> Self {
        let error: DialectError = error.into();
        let kind = kind(&error);
        let retry_after = match &error {
            DialectError::Failed(error) => match error.retry() {
                Retry::After(wait) => Some(wait.as_secs().max(1)),
                Retry::Never | Retry::Fresh => None,
            },
            _ => None,
        };
        let message = match kind.words() {
            Some(words) => {
                let error = &error as &dyn std::error::Error;
                match kind {
                    DialectFaultKind::Sandbox | DialectFaultKind::Server => {
                        tracing::error!(error, "a request of a dialect failed");
                    }
                    _ => tracing::warn!(error, "a request of a dialect is not served"),
                }
                words.to_owned()
            }
            None => error.to_string(),
        };
        Self {
            kind,
            retry_after,
            ..Self::new(kind.status(), message)
        }
    }
}

fn kind(error: &DialectError) -> DialectFaultKind {
    match error {
        DialectError::NoEntry(NoEntry::NoKey(_)) => DialectFaultKind::NoKey,
        DialectError::NoEntry(NoEntry::WrongKey(_)) => DialectFaultKind::WrongKey,
        DialectError::NoEntry(NoEntry::Forbidden(_)) => DialectFaultKind::Forbidden,
        DialectError::NoEntry(NoEntry::Unavailable(_)) | DialectError::Hosting(HostingError::Closed) => {
            DialectFaultKind::Unavailable
        }
        DialectError::Hosting(HostingError::Ended) => DialectFaultKind::Ended,
        DialectError::Denied(_) | DialectError::Hosting(_) => DialectFaultKind::Quota,
        DialectError::Upload(error) => match error {
            UploadError::TooLarge { .. } => DialectFaultKind::TooLarge,
            UploadError::Denied(_) | UploadError::Busy { .. } => DialectFaultKind::Quota,
            UploadError::TimedOut(_) => DialectFaultKind::Timeout,
            UploadError::Broken(_) => DialectFaultKind::Request,
            UploadError::File(error) if is_disk_full(error) => DialectFaultKind::StorageFull,
            UploadError::File(_) => DialectFaultKind::Server,
        },
        DialectError::Failed(error) => of_session(error),
    }
}

fn of_session(error: &Error) -> DialectFaultKind {
    match error {
        Error::Closed => return DialectFaultKind::Ended,
        Error::Process(ProcessError::NotFound { .. } | ProcessError::Lost { .. }) => {
            return DialectFaultKind::Missing;
        }
        Error::Process(ProcessError::TooMany) | Error::Port(PortError::TooMany { .. }) => {
            return DialectFaultKind::Quota;
        }
        Error::Port(PortError::NoSandbox { .. } | PortError::Closed { .. }) => return DialectFaultKind::Port,
        _ => {}
    }
    match (error.refusal(), error.blame()) {
        (Some(("not_found", _)), _) => DialectFaultKind::NoFile,
        (Some(("no_space", _)), _) => DialectFaultKind::Space,
        (Some(_), _) | (None, Blame::Caller) => DialectFaultKind::Request,
        (None, Blame::Policy) => DialectFaultKind::Forbidden,
        (None, Blame::Capacity) => DialectFaultKind::Capacity,
        (None, Blame::Backend) => DialectFaultKind::Sandbox,
        (None, Blame::Internal) if error.is_disk_full() => DialectFaultKind::StorageFull,
        (None, Blame::Internal) => DialectFaultKind::Server,
    }
}
