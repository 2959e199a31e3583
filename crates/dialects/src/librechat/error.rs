//! Errors as `{error}`, with the status by which LibreChat tells them apart.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::Error;
use cellblock_interpreter::hosting::{Denied, HostingError};
use serde_json::{Value, json};

use crate::door::NoEntry;
use crate::fault::{SessionFault, SessionFaultKind};
use crate::host::DialectError;

/// When a client may try again that has been denied.
const SOON: u64 = 5;

/// Why a request failed.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    body: Value,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let error: String = error.into();
        Self {
            status,
            body: json!({ "error": error }),
        }
    }

    pub(super) fn invalid(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn unauthorized(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, error)
    }

    /// Something that this server never has; clients do not ask for it again.
    pub(super) fn unsupported(code: &str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            status: StatusCode::BAD_REQUEST,
            body: json!({"error": message, "code": code, "message": message}),
        }
    }

    pub(super) fn server(what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, "{what}");
        let message = format!("{what}: the server failed; its log says why");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    fn limited(message: &str) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            body: json!({"error": "rate_limited", "retry_after_seconds": SOON, "message": message}),
        }
    }

    /// The message.
    pub(super) fn text(&self) -> &str {
        let message = self.body.get("message").or_else(|| self.body.get("error"));
        message.and_then(Value::as_str).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

impl From<NoEntry> for Problem {
    fn from(error: NoEntry) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl From<Denied> for Problem {
    fn from(error: Denied) -> Self {
        Self::limited(&error.to_string())
    }
}

impl From<HostingError> for Problem {
    fn from(error: HostingError) -> Self {
        match error {
            HostingError::Closed | HostingError::Ended => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            _ => Self::limited(&error.to_string()),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let SessionFault { kind, message } = SessionFault::from(error);
        let status = match kind {
            SessionFaultKind::Missing => StatusCode::NOT_FOUND,
            SessionFaultKind::Request => StatusCode::BAD_REQUEST,
            SessionFaultKind::Ended | SessionFaultKind::Capacity => StatusCode::SERVICE_UNAVAILABLE,
            SessionFaultKind::Sandbox => StatusCode::BAD_GATEWAY,
            SessionFaultKind::Server => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, message)
    }
}

impl From<DialectError> for Problem {
    fn from(error: DialectError) -> Self {
        error.spoken()
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}
