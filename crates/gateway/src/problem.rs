//! Why a request of our own REST cannot be served: an error in the API's form, with a status of its own.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::Error;
use cellblock_interpreter::error::{Blame, Retry};
use cellblock_interpreter::session::checkpoints::CheckpointError;
use cellblock_interpreter::session::fork::ForkError;
use cellblock_interpreter::session::ports::PortError;
use cellblock_interpreter::session::processes::ProcessError;

use crate::records::RecordsError;

/// Seconds after which trying again makes sense where nobody knows better.
const SOON: u64 = 1;

/// Why a request cannot be served. Boxed, as it is rare and large.
#[derive(Debug)]
pub(crate) struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
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
        Self(Box::new(Inner {
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

    /// What was sent is more than is taken.
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
            CheckpointError::NotFound { .. } => return Self::missing(error.code(), message),
            CheckpointError::Unsupported { .. }
            | CheckpointError::InvalidName { .. }
            | CheckpointError::NameTaken { .. } => StatusCode::BAD_REQUEST,
            CheckpointError::Refused { .. }
            | CheckpointError::Files { .. }
            | CheckpointError::Ended { .. }
            | CheckpointError::Lost { .. } => StatusCode::CONFLICT,
        };
        Self::new(status, ErrorKind::InvalidRequestError, error.code(), message)
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

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self(Box::new(Inner {
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

/// Errors that the caller can repair keep their message; all others may name paths of the host, and stay in the log.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Closed) {
            return Self::missing("session_not_found", "the session has ended");
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
                let mut problem = Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    ErrorKind::ServerError,
                    "capacity",
                    "no sandbox could be had in time; try again later",
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
            (Blame::Internal, _) => Self::internal("serve the request", &error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Inner {
            status,
            retry_after,
            error,
        } = *self.0;
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

        let spool = Problem::from(Error::Spool(std::io::Error::other("/var/lib/secret is full")));
        assert_eq!(spool.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!spool.error().message.contains("secret"));
    }

    #[test]
    fn a_full_gateway_says_when_to_come_back() {
        let response = Problem::busy("session_busy", "too many requests wait").into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }
}
