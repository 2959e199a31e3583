//! `GET /v1/artifacts/{sha256}`: bytes that code made. What a browser might run, it is told to save.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_artifact::{ArtifactError, ArtifactId, Reader};
use futures_util::stream;

use super::media::{header, is_active};
use super::range::{Asked, read};
use crate::problem::Problem;
use crate::server::{Caller, Gateway};

/// Content is what its name says, so it never changes; another caller must not get it from a shared cache.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
const SANDBOXED: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");

/// The bytes of an artifact.
#[utoipa::path(
    get, operation_id = "read_artifact", path = "/v1/artifacts/{sha256}",
    tag = "artifacts",
    params(("sha256" = String, Path, description = "64 lowercase hexadecimal digits")),
    responses(
        (status = 200, description = "The bytes, in their own media type. Types that a browser might run come as an attachment."),
        (status = 206, description = "The part that `Range` asks for"),
        (status = 304, description = "`If-None-Match` names it"),
        (status = 404, description = "There is no such artifact among the caller's", body = crate::openapi::Error),
        (status = 416, description = "`Range` lies beyond its end"),
    )
)]
pub(crate) async fn serve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(sha256): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = visible(&gateway, &caller, &sha256).await?;
    let store = &gateway.store;
    let metadata = store.metadata(id).await.map_err(|error| lost(id, &error))?;
    let tag = format!("\"{id}\"");
    let mut answer = HeaderMap::new();
    answer.insert(CACHE_CONTROL, CACHE);
    answer.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer.insert(CONTENT_SECURITY_POLICY, SANDBOXED);
    answer.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Ok(tag) = HeaderValue::try_from(&tag) {
        answer.insert(ETAG, tag);
    }
    let known = text(&headers, &IF_NONE_MATCH).is_some_and(|tags| tags.contains(&tag) || tags.trim() == "*");
    if known {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    answer.insert(CONTENT_TYPE, header(&metadata.media_type));
    if is_active(&metadata.media_type) {
        answer.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    match read(text(&headers, &RANGE), metadata.bytes) {
        Asked::Whole => {
            let reader = store.reader(id).await.map_err(|error| lost(id, &error))?;
            answer.insert(CONTENT_LENGTH, HeaderValue::from(metadata.bytes));
            Ok((answer, Body::from_stream(pieces(reader))).into_response())
        }
        Asked::Part(part) => {
            let (start, end) = (part.start, part.end - 1);
            let bytes = store
                .get_range(id, part)
                .await
                .map_err(|error| lost(id, &error))?;
            if let Ok(range) = HeaderValue::try_from(format!("bytes {start}-{end}/{}", metadata.bytes)) {
                answer.insert(CONTENT_RANGE, range);
            }
            Ok((StatusCode::PARTIAL_CONTENT, answer, bytes).into_response())
        }
        Asked::Beyond => {
            let mut answer = HeaderMap::new();
            if let Ok(range) = HeaderValue::try_from(format!("bytes */{}", metadata.bytes)) {
                answer.insert(CONTENT_RANGE, range);
            }
            Ok((StatusCode::RANGE_NOT_SATISFIABLE, answer).into_response())
        }
    }
}

/// The artifact of this name, if it is the caller's.
pub(crate) async fn visible(gateway: &Gateway, caller: &Caller, sha256: &str) -> Result<ArtifactId, Problem> {
    let missing = || Problem::missing("artifact_not_found", "there is no such artifact");
    // Its address may end as a file's name does.
    let sha256 = sha256.split('.').next().unwrap_or_default();
    let id: ArtifactId = sha256.parse().map_err(|_| missing())?;
    let theirs = gateway.records.owns_artifact(&caller.owner, sha256).await?;
    if theirs { Ok(id) } else { Err(missing()) }
}

fn text<'a>(headers: &'a HeaderMap, name: &axum::http::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn lost(id: ArtifactId, error: &ArtifactError) -> Problem {
    if matches!(error, ArtifactError::NotFound { .. }) {
        // It was granted and is not there any more: a collector has taken it.
        return Problem::missing("artifact_not_found", format!("the artifact {id} was removed"));
    }
    Problem::internal("read the artifact", error)
}

fn pieces(reader: Reader) -> impl stream::Stream<Item = Result<bytes::Bytes, ArtifactError>> {
    stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(reader))),
            Ok(None) => None,
            // A damaged artifact is cut short, which its length tells.
            Err(error) => Some((Err(error), None)),
        }
    })
}
