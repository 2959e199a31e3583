//! Bodies of requests: JSON that is read strictly, and bytes that are spooled as they come.

use std::fs::File;
use std::io::{Seek as _, Write as _};

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use cellblock_agent::wire::{ApiError, ErrorKind};
use futures_util::StreamExt as _;
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
            message: "the body is a list; send an object".to_owned(),
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
            message: format!("the body cannot be read: {error}"),
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

/// Takes a body into a file as it comes, at most so many bytes; answers the file, from its start, and its size.
pub(super) async fn spool(body: Body, file: File, limit: u64) -> Result<(File, u64), Problem> {
    let mut pieces = body.into_data_stream();
    let (mut file, mut size) = (file, 0_u64);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| {
            let status = StatusCode::BAD_REQUEST;
            let kind = ErrorKind::InvalidRequestError;
            Problem::new(status, kind, "incomplete_body", "the body ended before its end")
        })?;
        size += piece.len() as u64;
        if size > limit {
            return Err(Problem::too_large("the body", limit));
        }
        // A piece is small; a file without a name is mostly memory of the page cache.
        file.write_all(&piece)
            .map_err(|error| Problem::internal("keep the body", &error))?;
    }
    file.rewind()
        .map_err(|error| Problem::internal("keep the body", &error))?;
    Ok((file, size))
}

/// A file without a name.
pub(super) fn nameless() -> Result<File, Problem> {
    tempfile::tempfile().map_err(|error| Problem::internal("make room for the body", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_rejected_and_one_at_it_is_kept() {
        let spooled = spool(Body::from("12345"), nameless().unwrap(), 5).await;
        assert_eq!(spooled.unwrap().1, 5);
        let refused = spool(Body::from("123456"), nameless().unwrap(), 5)
            .await
            .unwrap_err();
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

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
