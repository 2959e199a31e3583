//! Errors as `{code, message}`, which both parts of the protocol use.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::json_error;
use serde_json::json;

use crate::fault::{DialectFault, DialectFaultKind};

/// Reason that a request failed.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message)
    }

    /// Something that the protocol has and this server does not.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "UNSUPPORTED", message)
    }

    pub(super) fn no_sandbox(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "SANDBOX_NOT_FOUND",
            format!("sandbox `{id}` does not exist, or it has expired; create another one"),
        )
    }

    pub(super) fn paused(id: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "SANDBOX_PAUSED",
            format!("sandbox `{id}` is paused; resume it first"),
        )
    }

    pub(super) fn missing(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn unknown_route() -> Self {
        Self::missing("NOT_FOUND", "this server has no such OpenSandbox route")
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "RUNTIME_ERROR", message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({"code": self.code, "message": self.message});
        (self.status, Json(body)).into_response()
    }
}

impl<E: Into<DialectFault>> From<E> for Problem {
    fn from(error: E) -> Self {
        let fault: DialectFault = error.into();
        let code = match fault.kind {
            DialectFaultKind::NoKey => "MISSING_API_KEY",
            DialectFaultKind::WrongKey => "INVALID_API_KEY",
            DialectFaultKind::Forbidden => "FORBIDDEN",
            DialectFaultKind::Unavailable => "UNAVAILABLE",
            DialectFaultKind::Quota => "QUOTA_EXCEEDED",
            DialectFaultKind::Timeout => "REQUEST_TIMEOUT",
            DialectFaultKind::TooLarge => "PAYLOAD_TOO_LARGE",
            DialectFaultKind::Ended => "SANDBOX_NOT_FOUND",
            DialectFaultKind::Missing => "NOT_FOUND",
            DialectFaultKind::NoFile => "FILE_NOT_FOUND",
            DialectFaultKind::Request | DialectFaultKind::Space => "INVALID_REQUEST",
            DialectFaultKind::StorageFull => "STORAGE_FULL",
            DialectFaultKind::Port => "PORT_CLOSED",
            DialectFaultKind::Capacity => "CAPACITY",
            DialectFaultKind::Sandbox => "SANDBOX_FAILED",
            DialectFaultKind::Server => "RUNTIME_ERROR",
        };
        Self::new(fault.status, code, fault.message)
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let (status, code) = match rejection.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => (status, "PAYLOAD_TOO_LARGE"),
            _ => (StatusCode::BAD_REQUEST, "INVALID_REQUEST_BODY"),
        };
        Self::new(status, code, json_error::describe(&rejection.body_text()))
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(json_error::describe(&rejection.body_text()))
    }
}
