//! What went wrong around a session, as a status and a message for the dialect's own form of an error.

use axum::http::StatusCode;
use cellblock_interpreter::Error;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::hosting::HostingError;
use cellblock_interpreter::session::ports::PortError;
use cellblock_interpreter::session::processes::ProcessError;

use crate::host::DialectError;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialectFault {
    pub(crate) status: StatusCode,
    /// What its reader may know of it.
    pub(crate) message: String,
}

impl DialectFault {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    /// We failed; the log says how.
    pub(crate) fn internal(action: &str, error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, action, "a request of a dialect failed");
        let message = format!("could not {action}; the server's log says why");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl<E: Into<DialectError>> From<E> for DialectFault {
    fn from(error: E) -> Self {
        let (status, message) = of(&error.into());
        Self { status, message }
    }
}

fn of(error: &DialectError) -> (StatusCode, String) {
    let status = match error {
        DialectError::NoEntry(error) => error.status(),
        DialectError::Hosting(HostingError::Closed) => StatusCode::SERVICE_UNAVAILABLE,
        DialectError::Hosting(HostingError::Ended) => StatusCode::NOT_FOUND,
        DialectError::Denied(_) | DialectError::Hosting(_) => StatusCode::TOO_MANY_REQUESTS,
        DialectError::Failed(error) => return of_session(error),
    };
    (status, error.to_string())
}

fn of_session(error: &Error) -> (StatusCode, String) {
    let status = match error {
        Error::Process(ProcessError::NotFound { .. } | ProcessError::Lost { .. }) | Error::Closed => {
            StatusCode::NOT_FOUND
        }
        Error::Process(ProcessError::TooMany) | Error::Port(PortError::TooMany { .. }) => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Error::Port(PortError::NoSandbox { .. } | PortError::Closed { .. }) => StatusCode::BAD_GATEWAY,
        _ => match (error.refusal(), error.blame()) {
            (Some(("not_found", _)), _) => StatusCode::NOT_FOUND,
            (Some(_), _) | (None, Blame::Caller) => StatusCode::BAD_REQUEST,
            (None, Blame::Policy) => StatusCode::FORBIDDEN,
            (None, Blame::Capacity) => StatusCode::SERVICE_UNAVAILABLE,
            (None, Blame::Backend) => StatusCode::BAD_GATEWAY,
            (None, Blame::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
        },
    };
    if !status.is_server_error() {
        return (status, error.to_string());
    }
    // It may name what belongs to the host.
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a request of a dialect failed"
    );
    let message = match error.blame() {
        Blame::Capacity => "no sandbox became available in time; try again later",
        Blame::Backend => "the sandbox failed; its variables and files are lost. Try again",
        _ if matches!(error, Error::Port(_)) => return (status, error.to_string()),
        _ => "internal error; see the server's log",
    };
    (status, message.to_owned())
}
