//! Errors as Jupyter's clients read them: `{"message": …, "reason": …}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::fault::{DialectFault, DialectFaultKind};

/// Reason that a request is not served.
#[derive(Debug)]
pub(super) struct Problem(DialectFault);

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self(DialectFault::new(status, message))
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns whether the reason is that there is no such file.
    pub(super) fn is_no_file(&self) -> bool {
        self.0.kind == DialectFaultKind::NoFile
    }

    pub(super) fn into_status(self) -> (StatusCode, String) {
        (self.0.status, self.0.message)
    }

    /// Something that is not there, or is somebody else's.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let DialectFault { status, message, .. } = self.0;
        let body = json!({"message": message, "reason": status.canonical_reason()});
        (status, Json(body)).into_response()
    }
}

impl<E: Into<DialectFault>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}
