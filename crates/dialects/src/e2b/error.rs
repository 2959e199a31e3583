//! E2B's form of an error: `{"code": 404, "message": "…"}` with the same status.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::error::{Blame, Error, Retry};
use cellblock_interpreter::hosting::{Denied, HostingError};
use serde_json::json;

use crate::door::NoEntry;
use crate::fault::SessionFault;
use crate::host::DialectError;

/// Why a request fails.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) message: String,
    retry_after: Option<u64>,
}

/// What a route answers.
pub(super) type Answer<T> = Result<T, Problem>;

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Something of E2B's API that is not served, by its name.
    pub(super) fn not_served(what: &str, instead: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("{what} are not served by Cellblock; {instead}"),
        )
    }

    /// A mistake of this program, which the log explains.
    pub(super) fn internal(action: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, "{action}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{action}: internal error; see the server's log"),
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.status.as_u16(), "message": self.message });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<NoEntry> for Problem {
    fn from(error: NoEntry) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl From<Denied> for Problem {
    fn from(error: Denied) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string())
    }
}

impl From<HostingError> for Problem {
    fn from(error: HostingError) -> Self {
        let status = match error {
            HostingError::Closed => StatusCode::SERVICE_UNAVAILABLE,
            HostingError::Ended => StatusCode::BAD_GATEWAY,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        Self::new(status, error.to_string())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if let Some((code, reason)) = error.refusal() {
            return match code {
                "not_found" => Self::not_found(error.to_string()),
                "no_space" => Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "not enough disk space available",
                ),
                _ => Self::invalid(format!("{error}: {reason}")),
            };
        }
        let status = match error.blame() {
            Blame::Caller => StatusCode::BAD_REQUEST,
            Blame::Capacity => StatusCode::SERVICE_UNAVAILABLE,
            Blame::Policy | Blame::Backend => StatusCode::INTERNAL_SERVER_ERROR,
            Blame::Internal => return Self::internal("use a sandbox", &error),
        };
        let retry_after = match error.retry() {
            Retry::After(wait) => Some(wait.as_secs().max(1)),
            Retry::Never | Retry::Fresh => None,
        };
        // What failed here may name what belongs to the host.
        let message = if status.is_server_error() {
            SessionFault::from(error).message
        } else {
            error.to_string()
        };
        Self {
            retry_after,
            ..Self::new(status, message)
        }
    }
}

impl From<DialectError> for Problem {
    fn from(error: DialectError) -> Self {
        error.spoken()
    }
}
