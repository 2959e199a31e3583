//! Errors as `{error}`, with the status by which LibreChat tells them apart.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::artifact::is_disk_full;
use cellblock_interpreter::json_error;
use serde_json::{Value, json};

use crate::fault::{DialectFault, DialectFaultKind};

/// Seconds after which a client may retry that has been denied.
const SOON: u64 = 5;

/// Reason that a request failed.
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
        if is_disk_full(error) {
            let message = format!("{what}: the disk of the server's data folder is full; free space there");
            return Self::new(StatusCode::INSUFFICIENT_STORAGE, message);
        }
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

impl<E: Into<DialectFault>> From<E> for Problem {
    fn from(error: E) -> Self {
        let fault: DialectFault = error.into();
        match fault.kind {
            DialectFaultKind::Quota => Self::limited(&fault.message),
            DialectFaultKind::Ended => Self::new(StatusCode::SERVICE_UNAVAILABLE, fault.message),
            _ => Self::new(fault.status, fault.message),
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), json_error::describe(&rejection.body_text()))
    }
}
