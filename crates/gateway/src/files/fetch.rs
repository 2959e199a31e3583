//! Bytes of files in the artifact store: kept, opened, and sent.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_artifact::{ArtifactId, Reader, is_disk_full};
use futures_util::stream;

use super::media::media_type;
use crate::problem::storage_full;
use crate::state::Gateway;

/// Keeps bytes as long as what has this id is there.
pub(crate) async fn pin(gateway: &Gateway, id: &str, sha256: &str) -> Result<(), ApiError> {
    let artifact = parse(sha256)?;
    let pinned = gateway.store.pin(id, [artifact]).await;
    pinned.map_err(|error| failed(&error))
}

/// Releases the files. An error of the store is only logged: it costs space, and nothing else.
pub(crate) async fn unpin(gateway: &Gateway, id: &str) {
    if let Err(error) = gateway.store.unpin(id).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            id,
            "let go of a file's bytes"
        );
    }
}

/// Answers a file's bytes, piece by piece. No browser shows them as a page of ours.
pub(crate) async fn send(
    gateway: &Gateway,
    name: &str,
    bytes: i64,
    sha256: &str,
) -> Result<Response, ApiError> {
    let reader = gateway.store.reader(parse(sha256)?).await;
    let reader = reader.map_err(|error| failed(&error))?;
    let pieces = stream::unfold(Some(reader), |reader: Option<Reader>| async move {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    let headers = [
        (CONTENT_TYPE, media_type(name).to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename*=UTF-8''{}", encoded(name)),
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A name as RFC 8187 has it in a header.
fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn parse(sha256: &str) -> Result<ArtifactId, ApiError> {
    sha256.parse().map_err(|error| failed(&error))
}

/// Returns a client's error for a failed store.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> ApiError {
    if is_disk_full(error) {
        return storage_full("write a file's bytes", error);
    }
    tracing::error!(error, "use the store of files");
    ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway could not read or write a file's bytes; its log says why".to_owned(),
        param: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_headers_are_plain() {
        assert_eq!(encoded("a b\"\r\né.csv"), "a%20b%22%0D%0A%C3%A9.csv");
    }
}
