//! Errors as answers.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::records::RecordsError;
use crate::wire::{ApiError, ErrorKind};

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, axum::Json(self)).into_response()
    }
}

impl From<RecordsError> for ApiError {
    fn from(error: RecordsError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "use the records");
        Self {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "the gateway could not read or write what it remembers; its log says why".to_owned(),
            param: None,
        }
    }
}
