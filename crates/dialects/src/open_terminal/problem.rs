//! Errors as Open Terminal's clients read them: `{"detail": …}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::fault::DialectFault;

/// Reason that a request is not served.
#[derive(Debug)]
pub(super) struct Problem(pub(super) DialectFault);

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(DialectFault::new(status, detail))
    }

    /// An argument that is wrong.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Something that is not there, or is somebody else's.
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let DialectFault { status, message, .. } = self.0;
        (status, Json(json!({ "detail": message }))).into_response()
    }
}

impl<E: Into<DialectFault>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}
