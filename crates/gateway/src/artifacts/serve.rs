//! `GET /v1/artifacts/{sha256}`: bytes that code made. Formats that a browser could run are sent as
//! downloads.

use std::ops::Range;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_artifact::{ArtifactError, ArtifactId, Metadata, Reader, Store};
use cellblock_interpreter::chart::VEGA_LITE;
use cellblock_interpreter::picture::{PictureFormat, vega_lite_of};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;

use super::media::{header, is_active};
use super::range::{AskedRange, read};
use crate::conversions::convert;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Content is what its name says, so it never changes; another caller must not get it from a shared cache.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
/// Bytes of a part that are read at a time.
const PART: u64 = 1 << 20;
/// Maximum size of a chart that is converted.
const CHART_BYTES: u64 = 32 << 20;
const SANDBOXED: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");

/// Returns the bytes of an artifact.
#[utoipa::path(
    get, operation_id = "read_artifact", path = "/v1/artifacts/{sha256}",
    tag = "artifacts",
    params(
        ("sha256" = String, Path, description = "64 lowercase hexadecimal digits"),
        (
            "format" = Option<String>,
            Query,
            description = "Converts a chart: `png`, `svg`, `html` (a page that needs no network) \
                           or `vega-lite`"
        ),
    ),
    responses(
        (
            status = 200,
            description = "The bytes, with their own media type. Types that a browser might execute are \
                           sent as attachments."
        ),
        (status = 206, description = "The requested `Range`"),
        (status = 304, description = "`If-None-Match` matches"),
        (status = 400, description = "The artifact cannot be converted to the format",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such artifact", body = crate::openapi::Error),
        (status = 416, description = "`Range` is beyond the end"),
        (
            status = 429,
            description = "A conversion counts as a cell, and a quota of cells is used \
                           up; see `Retry-After`",
            body = crate::openapi::Error
        ),
        (status = 503, description = "Too many conversions are waiting; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn serve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(sha256): Path<String>,
    Query(asked): Query<Conversion>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = visible(&gateway, &caller, &sha256).await?;
    let store = &gateway.store;
    let metadata = store.metadata(id).await.map_err(|error| lost(id, &error))?;
    if let Some(format) = asked.format {
        return drawn(&gateway, &caller, &metadata, &format).await;
    }
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
        AskedRange::Whole => {
            answer.insert(CONTENT_LENGTH, HeaderValue::from(metadata.bytes));
            Ok((answer, body_of(store, id).await?).into_response())
        }
        AskedRange::Part(part) => {
            let (start, end) = (part.start, part.end - 1);
            answer.insert(CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
            let body = part_of(store.clone(), id, part).await?;
            if let Ok(range) = HeaderValue::try_from(format!("bytes {start}-{end}/{}", metadata.bytes)) {
                answer.insert(CONTENT_RANGE, range);
            }
            Ok((StatusCode::PARTIAL_CONTENT, answer, body).into_response())
        }
        AskedRange::Beyond => {
            let mut answer = HeaderMap::new();
            if let Ok(range) = HeaderValue::try_from(format!("bytes */{}", metadata.bytes)) {
                answer.insert(CONTENT_RANGE, range);
            }
            Ok((StatusCode::RANGE_NOT_SATISFIABLE, answer).into_response())
        }
    }
}

/// Format to which a chart is to be converted.
#[derive(Debug, Deserialize)]
pub(crate) struct Conversion {
    format: Option<String>,
}

/// A chart in another format, which counts as a cell of the caller's. Pictures are drawn in a sandbox.
async fn drawn(
    gateway: &Gateway,
    caller: &Caller,
    chart: &Metadata,
    format: &str,
) -> Result<Response, Problem> {
    let picture = match format {
        "png" => Some((PictureFormat::Png, "image/png")),
        "svg" => Some((PictureFormat::Svg, "image/svg+xml")),
        "html" => Some((PictureFormat::Html, "text/html")),
        "vega-lite" => None,
        _ => {
            return Err(invalid(
                "invalid format: give `png`, `svg`, `html` or `vega-lite`".to_owned(),
            ));
        }
    };
    let work = converted(gateway.clone(), chart.clone(), picture);
    let (bytes, _permit) = convert(gateway, &caller.owner, work).await?;
    let media_type = picture.map_or(VEGA_LITE, |(_, media_type)| media_type);
    let mut answer = HeaderMap::new();
    answer.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer.insert(CONTENT_SECURITY_POLICY, SANDBOXED);
    answer.insert(CONTENT_TYPE, header(media_type));
    if is_active(media_type) {
        answer.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    Ok((answer, bytes).into_response())
}

/// The bytes of a chart as a picture, or as a specification.
async fn converted(
    gateway: Gateway,
    chart: Metadata,
    picture: Option<(PictureFormat, &'static str)>,
) -> Result<bytes::Bytes, Problem> {
    let not_drawn = |message: String| invalid(format!("the artifact cannot be converted: {message}"));
    let (store, id) = (&gateway.store, chart.sha256);
    if chart.bytes > CHART_BYTES {
        let message = format!(
            "it has {} bytes, and charts have at most {CHART_BYTES}",
            chart.bytes
        );
        return Err(not_drawn(message));
    }
    let bytes = store.get(id).await.map_err(|error| lost(id, &error))?;
    let vega_lite = tokio::task::spawn_blocking(move || vega_lite_of(&chart.media_type, &bytes));
    let vega_lite = vega_lite
        .await
        .map_err(|error| Problem::internal("read the chart", &error))?;
    let vega_lite = vega_lite.map_err(|error| not_drawn(error.to_string()))?;
    let Some((picture, _)) = picture else {
        return Ok(vega_lite.to_string().into());
    };
    let drawn = gateway.interpreter()?.draw(&vega_lite, picture).await?;
    let drawn = drawn
        .picture
        .ok_or_else(|| invalid(drawn.note.unwrap_or_default()))?;
    let bytes = store.get(drawn.sha256).await;
    bytes.map_err(|error| lost(drawn.sha256, &error))
}

fn invalid(message: String) -> Problem {
    Problem::invalid("format", message)
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

pub(super) fn lost(id: ArtifactId, error: &ArtifactError) -> Problem {
    if matches!(error, ArtifactError::NotFound { .. }) {
        // It was granted and is not there any more: a collector has taken it.
        return Problem::missing("artifact_not_found", format!("the artifact {id} was removed"));
    }
    Problem::internal("read the artifact", error)
}

/// All bytes of an artifact, one piece of which is in memory.
pub(crate) async fn body_of(store: &Store, id: ArtifactId) -> Result<Body, Problem> {
    let reader = store.reader(id).await.map_err(|error| lost(id, &error))?;
    Ok(Body::from_stream(pieces(reader)))
}

/// Some bytes of an artifact, one piece of which is in memory. The first is read before the answer begins.
async fn part_of(store: Store, id: ArtifactId, part: Range<u64>) -> Result<Body, Problem> {
    let first = part.start..part.end.min(part.start + PART);
    let rest = first.end..part.end;
    let first = store
        .get_range(id, first)
        .await
        .map_err(|error| lost(id, &error))?;
    let rest = stream::try_unfold(rest, move |rest| {
        let store = store.clone();
        async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let next = rest.start..rest.end.min(rest.start + PART);
            let rest = next.end..rest.end;
            let bytes = store.get_range(id, next).await?;
            Ok::<_, ArtifactError>(Some((bytes, rest)))
        }
    });
    Ok(Body::from_stream(stream::iter([Ok(first)]).chain(rest)))
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
