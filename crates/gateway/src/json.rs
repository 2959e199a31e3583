//! Bodies, mostly of JSON, whose errors are reported in the API's form.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::json_error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::problem::Problem;

/// A body of JSON. One that cannot be read is an [`ApiError`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(refuse(&rejection)),
        }
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

fn refuse(rejection: &JsonRejection) -> Response {
    let error = ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("invalid_json".to_owned()),
        message: json_error::describe(&rejection.body_text()),
        param: None,
    };
    let mut response = Problem::from(error).into_response();
    // 413 and 415 say more than 400.
    if rejection.status() != axum::http::StatusCode::UNPROCESSABLE_ENTITY {
        *response.status_mut() = rejection.status();
    }
    response
}

/// Something that is there no more.
pub(crate) fn deleted(id: &str, object: &str) -> Value {
    json!({"id": id, "object": object, "deleted": true})
}

/// The body, or why it cannot be read.
pub(crate) fn read(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    body.map_err(|rejection| {
        let (kind, code) = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            (ErrorKind::TooLarge, "request_too_large")
        } else {
            (ErrorKind::InvalidRequestError, "invalid_body")
        };
        ApiError {
            kind,
            code: Some(code.to_owned()),
            message: rejection.body_text(),
            param: None,
        }
    })
}
