//! Error of our own REST in the API's form, with a separate status.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_artifact::is_disk_full;
use cellblock_interpreter::Error;
use cellblock_interpreter::error::{Blame, Retry};
use cellblock_interpreter::image::layer::LayerError;
use cellblock_interpreter::session::checkpoints::CheckpointError;
use cellblock_interpreter::session::fork::ForkError;
use cellblock_interpreter::session::ports::PortError;
use cellblock_interpreter::session::processes::ProcessError;

use crate::body_limit;
use crate::records::RecordsError;

/// Seconds after which trying again makes sense where nobody knows better.
const SOON: u64 = 1;

/// Characters of an error's message that are shown of its beginning, and of its end.
const SHOWN: usize = 2000;

/// Reason that a request cannot be served. Boxed, as it is rare and large.
#[derive(Debug)]
pub(crate) struct Problem(Box<ProblemInner>);

#[derive(Debug)]
struct ProblemInner {
    status: StatusCode,
    retry_after: Option<u64>,
    error: ApiError,
}

impl Problem {
    /// Another status than the error's kind has.
    pub(crate) fn new(status: StatusCode, kind: ErrorKind, code: &str, message: impl Into<String>) -> Self {
        let error = ApiError {
            kind,
            code: Some(code.to_owned()),
            message: message.into(),
            param: None,
        };
        let retry_after = None;
        Self(Box::new(ProblemInner {
            status,
            retry_after,
            error,
        }))
    }

    /// A field that is wrong.
    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Self {
        ApiError::invalid(param, "invalid_value", message).into()
    }

    /// Something that is not there, or is somebody else's.
    pub(crate) fn missing(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NotFound, code, message)
    }

    /// Too much at once.
    pub(crate) fn busy(code: &str, message: impl Into<String>) -> Self {
        let mut problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::TooManyRequests,
            code,
            message,
        );
        problem.0.retry_after = Some(SOON);
        problem
    }

    /// Says after how many seconds trying again makes sense, if that is known.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: Option<f64>) -> Self {
        self.0.retry_after = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds.ceil()).ok())
            .map(|time| time.as_secs());
        self
    }

    /// A body that is longer than `http.max_body`.
    pub(crate) fn body_too_large(max_body: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::InvalidRequestError,
            "too_large",
            body_limit::message(max_body),
        )
    }

    /// Returns the error for a value that exceeds its limit.
    pub(crate) fn too_large(what: &str, limit: u64) -> Self {
        let message = format!("{what} has more than {limit} bytes, the limit");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::InvalidRequestError,
            "too_large",
            message,
        )
    }

    fn of_process(error: &ProcessError) -> Self {
        let message = error.to_string();
        match error {
            ProcessError::NotFound { .. } | ProcessError::Lost { .. } => Self::missing(error.code(), message),
            ProcessError::TooMany => Self::busy(error.code(), message),
            _ => Self::new(
                StatusCode::BAD_REQUEST,
                ErrorKind::InvalidRequestError,
                error.code(),
                message,
            ),
        }
    }

    fn of_port(error: &PortError) -> Self {
        let message = error.to_string();
        match error {
            PortError::TooMany { .. } => Self::busy(error.code(), message),
            PortError::NoNetwork { .. } => Self::new(
                StatusCode::BAD_REQUEST,
                ErrorKind::InvalidRequestError,
                error.code(),
                message,
            ),
            PortError::NoSandbox { .. } | PortError::Closed { .. } => Self::new(
                StatusCode::BAD_GATEWAY,
                ErrorKind::ServerError,
                error.code(),
                message,
            ),
        }
    }

    fn of_checkpoint(error: &CheckpointError) -> Self {
        let message = error.to_string();
        let status = match error {
            CheckpointError::NotFound { .. } | CheckpointError::NoTry => {
                return Self::missing(error.code(), message);
            }
            CheckpointError::Unsupported { .. }
            | CheckpointError::InvalidName { .. }
            | CheckpointError::NameTaken { .. } => StatusCode::BAD_REQUEST,
            CheckpointError::Refused { .. }
            | CheckpointError::Files { .. }
            | CheckpointError::Ended { .. }
            | CheckpointError::Lost { .. }
            | CheckpointError::Undecided { .. }
            | CheckpointError::TryEnded { .. }
            | CheckpointError::TryLost { .. } => StatusCode::CONFLICT,
        };
        Self::new(status, ErrorKind::InvalidRequestError, error.code(), message)
    }

    fn of_host(error: &Error) -> Self {
        if error.is_disk_full() {
            return storage_full("serve the request", error).into();
        }
        Self::internal("serve the request", error)
    }

    /// Returns the problem of packages for which there is no room, or no quota.
    fn of_requirements(error: &LayerError) -> Option<Self> {
        let (status, kind, code) = match error {
            LayerError::NoRoom { .. } => {
                tracing::warn!(%error, "no room for packages");
                let status = StatusCode::SERVICE_UNAVAILABLE;
                (status, ErrorKind::ServerError, "no_room_for_packages")
            }
            LayerError::Quota { .. } => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                (status, ErrorKind::TooManyRequests, "rate_limit_exceeded")
            }
            _ => return None,
        };
        Some(Self::new(status, kind, code, error.to_string()))
    }

    fn of_fork(error: &ForkError) -> Self {
        let status = match error {
            ForkError::Unsupported { .. } | ForkError::Count { .. } => StatusCode::BAD_REQUEST,
            ForkError::Refused { .. } | ForkError::Failed { .. } => StatusCode::CONFLICT,
        };
        let kind = ErrorKind::InvalidRequestError;
        Self::new(status, kind, error.code(), error.to_string())
    }

    /// We failed; the log says how.
    pub(crate) fn internal(action: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        if is_disk_full(error) {
            return storage_full(action, error).into();
        }
        tracing::error!(error, action, "a request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::ServerError,
            "internal",
            format!("could not {action}; the gateway's log says why"),
        )
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the error as the client receives it.
    pub(crate) fn error(&self) -> &ApiError {
        &self.0.error
    }
}

/// Nothing can be stored, because a disk is full. The log names its folder: clients must not learn
/// paths of the host.
pub(crate) fn storage_full(action: &str, error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, action, "the disk is full");
    ApiError {
        kind: ErrorKind::StorageFull,
        code: Some("storage_full".to_owned()),
        message: format!(
            "could not {action}: the disk of the server's data folder (`CELLBLOCK_HOME`) is full; free \
             space there, then send the request again"
        ),
        param: None,
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self(Box::new(ProblemInner {
            status: StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            retry_after: None,
            error,
        }))
    }
}

impl From<RecordsError> for ApiError {
    fn from(error: RecordsError) -> Self {
        if error.is_nul() {
            let message = "a text contains the character U+0000, which cannot be stored";
            return Self {
                kind: ErrorKind::InvalidRequestError,
                code: Some("invalid_value".to_owned()),
                message: message.to_owned(),
                param: None,
            };
        }
        if error.is_full() {
            return storage_full("write what the gateway remembers", &error);
        }
        tracing::error!(error = &error as &dyn std::error::Error, "use the records");
        if error.is_unavailable() {
            crate::retry::after(SOON);
            return Self {
                kind: ErrorKind::Unavailable,
                code: Some("records_unavailable".to_owned()),
                message: "the gateway cannot read or write what it remembers for now; send the request again"
                    .to_owned(),
                param: None,
            };
        }
        Self {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "the gateway could not read or write what it remembers; its log says why".to_owned(),
            param: None,
        }
    }
}

impl From<RecordsError> for Problem {
    fn from(error: RecordsError) -> Self {
        ApiError::from(error).into()
    }
}

/// Errors that the caller can repair keep their message; all others may name paths of the host, and
/// stay in the log.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Closed) {
            return Self::missing("session_not_found", "the session has ended");
        }
        if matches!(error, Error::Conversions { .. }) {
            let (status, kind) = (StatusCode::SERVICE_UNAVAILABLE, ErrorKind::ServerError);
            let mut problem = Self::new(status, kind, "capacity", error.to_string());
            problem.0.retry_after = Some(SOON);
            return problem;
        }
        if let Error::Argument {
            name,
            missing,
            reason,
        } = error
        {
            let code = if missing {
                "missing_required_parameter"
            } else {
                "invalid_value"
            };
            return ApiError::invalid(name, code, reason).into();
        }
        if let Error::Process(error) = &error {
            return Self::of_process(error);
        }
        if let Error::Port(error) = &error {
            return Self::of_port(error);
        }
        if let Error::Fork(error) = &error {
            return Self::of_fork(error);
        }
        if let Error::Checkpoint(error) = &error {
            return Self::of_checkpoint(error);
        }
        if let Error::Requirements(error) = &error
            && let Some(problem) = Self::of_requirements(error)
        {
            return problem;
        }
        let refused = error.refusal().map(|(code, _)| code.to_owned());
        match (error.blame(), refused.as_deref()) {
            (Blame::Caller, Some("not_found")) => Self::missing("file_not_found", error.to_string()),
            (Blame::Caller, Some(code)) => {
                ApiError::invalid("path", &format!("file_{code}"), error.to_string()).into()
            }
            (Blame::Caller, None) => {
                let status = StatusCode::BAD_REQUEST;
                Self::new(
                    status,
                    ErrorKind::InvalidRequestError,
                    "bad_request",
                    error.to_string(),
                )
            }
            (Blame::Capacity, _) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "no sandbox in time");
                let shortage = match error.shortage() {
                    Some(shortage) => format!("no sandbox is available at present: {shortage}"),
                    None => "no sandbox is available at present; try again later".to_owned(),
                };
                let mut problem = Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    ErrorKind::ServerError,
                    "capacity",
                    shortage,
                );
                let after = match error.retry() {
                    Retry::After(after) => after.as_secs().max(1),
                    Retry::Never | Retry::Fresh => SOON,
                };
                problem.0.retry_after = Some(after);
                problem
            }
            (Blame::Backend, _) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a sandbox failed");
                let what = match error.lost_process() {
                    Some(process) => format!("{process} has ended, and the sandbox with it"),
                    None => "the sandbox failed and was destroyed".to_owned(),
                };
                Self::new(
                    StatusCode::BAD_GATEWAY,
                    ErrorKind::ServerError,
                    "backend",
                    format!("{what}; the session goes on in a new one, without its variables and files"),
                )
            }
            (Blame::Policy, _) => {
                tracing::error!(error = &error as &dyn std::error::Error, "refused by the policy");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ErrorKind::ServerError,
                    "policy",
                    "this gateway's policy refuses that; its log says why",
                )
            }
            (Blame::Internal, _) => Self::of_host(&error),
        }
    }
}

/// Cuts a message that repeats much of what a request had.
fn without_middle(message: String) -> String {
    let count = message.chars().count();
    let Some(hidden) = count.checked_sub(2 * SHOWN).filter(|hidden| *hidden > 0) else {
        return message;
    };
    let head: String = message.chars().take(SHOWN).collect();
    let tail: String = message.chars().skip(SHOWN + hidden).collect();
    format!("{head} … ({hidden} characters are left out) … {tail}")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let ProblemInner {
            status,
            retry_after,
            mut error,
        } = *self.0;
        error.message = without_middle(error.message);
        let mut response = (status, axum::Json(error)).into_response();
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_repeats_a_request_loses_its_middle() {
        let whole = "x".repeat(2 * SHOWN);
        assert_eq!(without_middle(whole.clone()), whole);
        let cut = without_middle(format!("begin{}end", "ü".repeat(5 << 20)));
        assert!(cut.starts_with("beginü") && cut.ends_with("üend"), "{cut}");
        assert!(cut.contains(" … (5238888 characters are left out) … "), "{cut}");
    }

    #[test]
    fn each_kind_of_failure_has_the_status_that_says_who_has_to_act() {
        let name = "sales".to_owned();
        let reason = "it is not a table".to_owned();
        let caller = Problem::from(Error::Input { name, reason });
        assert_eq!(caller.status(), StatusCode::BAD_REQUEST);
        assert_eq!(caller.error().message, "bind input `sales`: it is not a table");

        let path = "/workspace/x".to_owned();
        let missing = Problem::from(Error::NoFile { path });
        assert_eq!(missing.status(), StatusCode::NOT_FOUND);
        assert_eq!(missing.error().code.as_deref(), Some("file_not_found"));

        let full = Problem::from(Error::Conversions { limit: 64 });
        assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(full.error().message.contains("the limit is 64"), "{full:?}");
        assert_eq!(full.into_response().headers()[RETRY_AFTER], "1");

        let spool = Problem::from(Error::Spool(std::io::Error::other("/var/lib/secret is full")));
        assert_eq!(spool.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!spool.error().message.contains("secret"));

        let full = std::io::Error::new(std::io::ErrorKind::StorageFull, "/var/lib/secret is full");
        let full = Problem::from(Error::Spool(full));
        assert_eq!(full.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(full.error().code.as_deref(), Some("storage_full"));
        assert!(!full.error().message.contains("secret"), "{full:?}");
    }

    #[test]
    fn a_full_gateway_says_when_to_come_back() {
        let response = Problem::busy("session_busy", "too many requests wait").into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
