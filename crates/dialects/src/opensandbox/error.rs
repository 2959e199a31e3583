//! Errors as `{code, message}`, which both parts of the protocol use.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::Error;
use cellblock_interpreter::hosting::{Denied, HostingError};
use serde_json::json;

use crate::door::NoEntry;
use crate::fault::{SessionFault, SessionFaultKind};
use crate::host::DialectError;

/// Why a request failed.
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

impl From<NoEntry> for Problem {
    fn from(error: NoEntry) -> Self {
        let code = match &error {
            NoEntry::NoKey(_) => "MISSING_API_KEY",
            NoEntry::WrongKey(_) => "INVALID_API_KEY",
            NoEntry::Forbidden(_) => "FORBIDDEN",
            NoEntry::Unavailable(_) => "UNAVAILABLE",
        };
        Self::new(error.status(), code, error.to_string())
    }
}

impl From<Denied> for Problem {
    fn from(error: Denied) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED", error.to_string())
    }
}

impl From<HostingError> for Problem {
    fn from(error: HostingError) -> Self {
        let (status, code) = match error {
            HostingError::Ended => (StatusCode::NOT_FOUND, "SANDBOX_NOT_FOUND"),
            HostingError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            _ => (StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let SessionFault { kind, message } = SessionFault::from(error);
        match kind {
            SessionFaultKind::Ended => Self::missing("SANDBOX_NOT_FOUND", message),
            SessionFaultKind::Missing => Self::missing("NOT_FOUND", message),
            SessionFaultKind::Request => Self::invalid(message),
            SessionFaultKind::Capacity => Self::new(StatusCode::SERVICE_UNAVAILABLE, "CAPACITY", message),
            SessionFaultKind::Sandbox => Self::new(StatusCode::BAD_GATEWAY, "SANDBOX_FAILED", message),
            SessionFaultKind::Server => Self::internal(message),
        }
    }
}

impl From<DialectError> for Problem {
    fn from(error: DialectError) -> Self {
        error.spoken()
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status();
        let code = if status == StatusCode::PAYLOAD_TOO_LARGE {
            "PAYLOAD_TOO_LARGE"
        } else {
            "INVALID_REQUEST_BODY"
        };
        Self::new(status, code, rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}
