//! `/files/upload` and `/files/download`: the bytes of files.

use std::io::{Read as _, Seek as _, SeekFrom};

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartRejection};
use axum::extract::{Multipart, RawQuery, State as Given};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tokio_util::io::ReaderStream;

use super::access::ExecdSandbox;
use super::error::Problem;
use super::sandbox::State;
use super::tree::{Permission, done, named, one};

/// Working directory of programs, by the names that it has.
const WORKSPACE: &str = "/workspace";
const MNT_DATA: &str = "/mnt/data";
/// Maximum number of files in one upload.
const FILES: usize = 1000;
/// Maximum size of what describes a file.
const MAX_METADATA: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
struct Metadata {
    path: String,
    #[serde(flatten)]
    permission: Permission,
}

/// Writes files: each has a part `metadata`, and then a part `file`.
pub(super) async fn upload(
    Given(state): Given<State>,
    opened: ExecdSandbox,
    headers: HeaderMap,
    parts: Result<Multipart, MultipartRejection>,
) -> Result<(), Problem> {
    let mut parts = parts.map_err(|error| Problem::invalid(error.body_text()))?;
    let broken = |error: axum::extract::multipart::MultipartError| Problem::invalid(error.body_text());
    let mut next: Option<Metadata> = None;
    let mut permissions = Vec::new();
    let mut files = 0;
    let mut receiving = state.host.begin_upload(&opened.owner, &headers).await?;
    while let Some(mut part) = receiving.within(parts.next_field()).await?.map_err(broken)? {
        match part.name() {
            Some("metadata") => {
                let text = receiving.within(text(&mut part)).await??;
                let metadata = serde_json::from_str(&text);
                next = Some(metadata.map_err(|error| Problem::invalid(format!("read `metadata`: {error}")))?);
            }
            Some("file") => {
                let metadata = next.take();
                let metadata =
                    metadata.ok_or_else(|| Problem::invalid("a part `file` follows its part `metadata`"))?;
                files += 1;
                if files > FILES {
                    return Err(Problem::invalid(format!(
                        "more than {FILES} files; send fewer at once"
                    )));
                }
                let path = place(&metadata.path);
                let received = receiving.receive(part).await?;
                opened.sandbox.session.put_file(&path, received.content).await?;
                if metadata.permission.is_unusual() {
                    permissions.push(metadata.permission.arguments(&path)?);
                }
            }
            other => {
                let name = other.unwrap_or_default();
                return Err(Problem::invalid(format!(
                    "part `{name}` is not `metadata` or `file`"
                )));
            }
        }
    }
    if files == 0 {
        return Err(Problem::invalid("the upload has no file"));
    }
    if !permissions.is_empty() {
        done(&opened, "change.permit", permissions).await?;
    }
    Ok(())
}

/// Reads a short part.
async fn text(part: &mut Field<'_>) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(chunk) = part
        .chunk()
        .await
        .map_err(|error| Problem::invalid(error.body_text()))?
    {
        if text.len() + chunk.len() > MAX_METADATA {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "PAYLOAD_TOO_LARGE",
                format!("`metadata` has more than {MAX_METADATA} bytes, which is the limit"),
            ));
        }
        text.extend_from_slice(&chunk);
    }
    String::from_utf8(text).map_err(|error| Problem::invalid(format!("read `metadata`: {error}")))
}

/// Reads a file: all of it, a range of its bytes, or some of its lines.
pub(super) async fn download(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let path = one(&query, "path")?;
    let opened = sandbox.session.open_file(place(&path)).await?;
    let (mut file, size) = (opened.content, opened.bytes);
    let mut answer = HeaderMap::new();
    answer.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    answer.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    answer.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let line = |name| named(&query, name).map(|text| number(name, &text)).transpose();
    let (offset, limit) = (line("offset")?, line("limit")?);
    let range = headers.get(RANGE).and_then(|it| it.to_str().ok());
    let failed = |error: std::io::Error| Problem::internal(format!("read the file: {error}"));
    match range {
        Some(_) if offset.is_some() || limit.is_some() => Err(Problem::invalid(
            "`offset` and `limit` count lines; send them without a `Range` header",
        )),
        Some(range) => {
            let Some((first, last)) = bounds(range, size) else {
                let whole = HeaderValue::try_from(format!("bytes */{size}"));
                let mut response = Problem::new(
                    StatusCode::RANGE_NOT_SATISFIABLE,
                    "INVALID_RANGE",
                    format!("range `{range}` is not within the file's {size} bytes"),
                )
                .into_response();
                if let Ok(whole) = whole {
                    response.headers_mut().insert(CONTENT_RANGE, whole);
                }
                return Ok(response);
            };
            file.seek(SeekFrom::Start(first)).map_err(failed)?;
            let length = last - first + 1;
            answer.insert(CONTENT_LENGTH, HeaderValue::from(length));
            if let Ok(value) = HeaderValue::try_from(format!("bytes {first}-{last}/{size}")) {
                answer.insert(CONTENT_RANGE, value);
            }
            let part = tokio::io::AsyncReadExt::take(tokio::fs::File::from_std(file), length);
            let body = Body::from_stream(ReaderStream::new(part));
            Ok((StatusCode::PARTIAL_CONTENT, answer, body).into_response())
        }
        None if offset.is_some() || limit.is_some() => {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map_err(failed)?;
            let first = offset.unwrap_or(1).max(1) - 1;
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            let lines = lines.skip(first).take(limit.unwrap_or(usize::MAX));
            let part: Vec<u8> = lines.flatten().copied().collect();
            Ok((answer, part).into_response())
        }
        None => {
            answer.insert(CONTENT_LENGTH, HeaderValue::from(size));
            let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
            Ok((answer, body).into_response())
        }
    }
}

fn number(name: &str, text: &str) -> Result<usize, Problem> {
    text.parse()
        .map_err(|_| Problem::invalid(format!("invalid {name} `{text}`: must be a number of lines")))
}

/// The first and the last byte of a range; `None` if it is not one of such a file.
fn bounds(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end = size.checked_sub(1)?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", count) => (size.saturating_sub(count.parse().ok()?), end),
        (first, "") => (first.parse().ok()?, end),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.min(end)),
    };
    (first <= last).then_some((first, last))
}

/// A path as the sandbox has it: relative ones are below the working directory, which has a second name.
pub(super) fn place(path: &str) -> String {
    if !path.starts_with('/') {
        return format!("{WORKSPACE}/{path}");
    }
    match path.strip_prefix(MNT_DATA) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{WORKSPACE}{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_its_file() {
        assert_eq!(bounds("bytes=0-9", 100), Some((0, 9)));
        assert_eq!(bounds("bytes=90-", 100), Some((90, 99)));
        assert_eq!(bounds("bytes=90-900", 100), Some((90, 99)));
        assert_eq!(bounds("bytes=-5", 100), Some((95, 99)));
        for wrong in ["bytes=100-", "bytes=9-3", "lines=1-2", "bytes=a-b", "bytes=-0"] {
            assert_eq!(bounds(wrong, 100), None, "{wrong}");
        }
        assert_eq!(bounds("bytes=0-0", 0), None);
    }

    #[test]
    fn the_working_directory_has_two_names() {
        assert_eq!(place("a/b"), "/workspace/a/b");
        assert_eq!(place("/mnt/data/a"), "/workspace/a");
        assert_eq!(place("/mnt/database"), "/mnt/database");
    }
}
