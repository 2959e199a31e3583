//! Bodies of requests: JSON that is read strictly, and what their headers say of them.

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::json_error;
use cellblock_settings::json::{ARRAY, OBJECT};
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Reads JSON. A page of another site can send any text without asking, but not under this content type.
pub(crate) fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    if !is_json(headers) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::InvalidRequestError,
            "unsupported_media_type",
            "send JSON with `Content-Type: application/json`",
        ));
    }
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    // A list would be read as an object's values, in their order.
    if first == Some(&b'[') {
        return Err(ApiError {
            kind: ErrorKind::InvalidRequestError,
            code: Some("invalid_value".to_owned()),
            message: format!("the body is {ARRAY}; send {OBJECT}"),
            param: None,
        }
        .into());
    }
    serde_json::from_slice(body).map_err(|error| {
        let code = if error.is_data() {
            "invalid_value"
        } else {
            "invalid_json"
        };
        ApiError {
            kind: ErrorKind::InvalidRequestError,
            code: Some(code.to_owned()),
            message: format!("the body cannot be read: {}", json_error::describe(&error)),
            param: None,
        }
        .into()
    })
}

/// The same; no body at all stands for the defaults.
pub(super) fn json_or_default<T: DeserializeOwned + Default>(
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    json(headers, body)
}

/// Whether a body is JSON, as far as its header says.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| essence == "application/json")
}

/// The media type of a body, without parameters.
pub(super) fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next()?.trim();
    Some(essence.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_read_as_json() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/plain".parse().unwrap());
        let refused = json::<serde_json::Value>(&headers, &Bytes::from_static(b"{}")).unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        headers.insert(CONTENT_TYPE, "Application/JSON; charset=utf-8".parse().unwrap());
        assert!(json::<serde_json::Value>(&headers, &Bytes::from_static(b"{}")).is_ok());
    }
}
