//! `/files`: bytes of files.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Query, Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::io::ReaderStream;

use super::super::error::{Answer, Problem};
use super::super::paths::{HOME, absolute, inside};
use super::super::place::{self, Inside};
use super::super::sandbox::HeldSandbox;
use super::super::secret::Operation;
use super::super::state::E2b;
use super::entry::{self, Entry};

/// Maximum number of files of one request.
const MOST: usize = 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    path: Option<String>,
    username: Option<String>,
    signature: Option<String>,
    signature_expiration: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Written {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Compose {
    source_paths: Vec<String>,
    destination: String,
}

pub(super) async fn read(
    State(e2b): State<E2b>,
    Query(named): Query<Named>,
    request: Request,
) -> Answer<Response> {
    let (parts, _) = request.into_parts();
    let held = opened(&parts, &e2b, &named, Operation::Read).await?;
    let path = reachable(named.path.as_deref().unwrap_or_default())?;
    let opened = {
        let turn = held.turn().await?;
        turn.session.open_file(inside(&path)).await
    };
    let opened = opened.map_err(|error| about(&path, error))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(opened.bytes));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let content = tokio::fs::File::from_std(opened.content);
    Ok((headers, Body::from_stream(ReaderStream::new(content))).into_response())
}

pub(super) async fn write(
    State(e2b): State<E2b>,
    Query(named): Query<Named>,
    request: Request,
) -> Answer<Json<Vec<Written>>> {
    let (parts, body) = request.into_parts();
    let held = opened(&parts, &e2b, &named, Operation::Write).await?;
    let encoding = parts
        .headers
        .get(CONTENT_ENCODING)
        .map(|it| it.as_bytes().to_ascii_lowercase());
    let body = match encoding.as_deref() {
        None | Some(b"identity" | b"") => body,
        Some(b"gzip") => unpacked(&e2b, body).await?,
        Some(other) => {
            let message = format!(
                "content encoding `{}` is not supported; use `gzip`, or send the bytes as they are",
                String::from_utf8_lossy(other)
            );
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    };
    let kind = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if !kind.starts_with("multipart/form-data") {
        let path = named.path.as_deref();
        let path = path.ok_or_else(|| Problem::invalid("`path` is missing; it names the file to write"))?;
        let body = body.into_data_stream();
        return Ok(Json(vec![put(&e2b, &held, path, body).await?]));
    }
    let request = Request::from_parts(parts, body);
    let multipart = Multipart::from_request(request, &e2b).await;
    let mut multipart = multipart.map_err(|error| Problem::invalid(error.body_text()))?;
    let mut written = Vec::new();
    loop {
        let field = multipart.next_field().await;
        let field = field
            .map_err(|error| Problem::invalid(format!("broken multipart body: {}", error.body_text())))?;
        let Some(field) = field else { break };
        if field.name() != Some("file") {
            continue;
        }
        if written.len() >= MOST {
            return Err(Problem::invalid(format!(
                "one request writes at most {MOST} files"
            )));
        }
        let path = named
            .path
            .clone()
            .or_else(|| field.file_name().map(str::to_owned));
        let path = path.ok_or_else(|| Problem::invalid("a part has no file name, and there is no `path`"))?;
        written.push(put(&e2b, &held, &path, field).await?);
    }
    if written.is_empty() {
        return Err(Problem::invalid("the body has no part `file`"));
    }
    Ok(Json(written))
}

pub(super) async fn compose(Inside(held): Inside, Json(request): Json<Compose>) -> Answer<Json<Entry>> {
    let paths = request.source_paths.iter().map(|path| reachable(path));
    let paths = paths.collect::<Answer<Vec<_>>>()?;
    let destination = reachable(&request.destination)?;
    let question = json!({"op": "compose", "paths": paths, "destination": destination});
    let mut said = held.kept.daemon.surveyor.ask(&held, &question).await?;
    Ok(Json(entry::read(&mut said, "entry")?))
}

/// Returns the sandbox if the request has its token, or a signature for the path.
async fn opened(parts: &Parts, e2b: &E2b, named: &Named, operation: Operation) -> Answer<HeldSandbox> {
    let held = place::unlocked(parts, e2b).await?;
    let Some(access) = &held.kept.access else {
        return Ok(held);
    };
    let given = parts
        .headers
        .get("x-access-token")
        .and_then(|it| it.to_str().ok());
    if given.is_some_and(|given| access.is(given)) {
        return Ok(held);
    }
    let Some(signature) = &named.signature else {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "the sandbox is secured; send its access token in the header `X-Access-Token`, or sign the address",
        ));
    };
    let path = named.path.as_deref().unwrap_or_default();
    let user = named.username.as_deref().unwrap_or_default();
    if access.signed(signature, path, operation, user, named.signature_expiration) {
        return Ok(held);
    }
    Err(Problem::new(
        StatusCode::UNAUTHORIZED,
        "the signature is not that of this path, operation and user, or it has expired",
    ))
}

/// Writes a file, from a spool: what is too large never reaches the sandbox.
async fn put<E: std::fmt::Display>(
    e2b: &E2b,
    held: &HeldSandbox,
    path: &str,
    content: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Answer<Written> {
    let path = reachable(path)?;
    let (file, bytes) = spool(content, limit(e2b)).await?;
    e2b.host.meter.upload(&held.kept.owner, bytes).await?;
    let turn = held.turn().await?;
    let put = turn.session.put_file(inside(&path), file).await;
    put.map_err(|error| about(&path, error))?;
    Ok(Written {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        kind: "file",
        path,
    })
}

fn limit(e2b: &E2b) -> u64 {
    e2b.host.max_upload.min(e2b.host.interpreter.limits().file_bytes)
}

fn too_large(limit: u64) -> Problem {
    let message = format!("the file is too large: the limit is {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn unspooled(error: &std::io::Error) -> Problem {
    Problem::internal("spool an upload", error)
}

/// Copies a stream into an unlinked file of the host, positioned at its start.
async fn spool<E: std::fmt::Display>(
    mut content: impl Stream<Item = Result<Bytes, E>> + Unpin,
    limit: u64,
) -> Answer<(File, u64)> {
    let mut file = tempfile::tempfile().map_err(|error| unspooled(&error))?;
    let mut bytes = 0;
    while let Some(part) = content.next().await {
        let part = part.map_err(|error| Problem::invalid(format!("read the body: {error}")))?;
        bytes += part.len() as u64;
        if bytes > limit {
            return Err(too_large(limit));
        }
        file.write_all(&part).map_err(|error| unspooled(&error))?;
    }
    file.rewind().map_err(|error| unspooled(&error))?;
    Ok((file, bytes))
}

/// Unpacks a body that is packed with gzip. It must not be too large before or after that.
async fn unpacked(e2b: &E2b, body: Body) -> Answer<Body> {
    let limit = limit(e2b);
    let (packed, _) = spool(body.into_data_stream(), limit).await?;
    let unpacking = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::tempfile().map_err(|error| unspooled(&error))?;
        let mut content = flate2::read::MultiGzDecoder::new(packed).take(limit + 1);
        let copied = std::io::copy(&mut content, &mut file);
        let bytes = copied.map_err(|error| Problem::invalid(format!("the body is not gzip: {error}")))?;
        if bytes > limit {
            return Err(too_large(limit));
        }
        file.rewind().map_err(|error| unspooled(&error))?;
        Ok(file)
    });
    let file = unpacking
        .await
        .map_err(|error| Problem::internal("unpack an upload", &error))??;
    Ok(Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(
        file,
    ))))
}

/// Returns the absolute path of a file whose bytes can be read and written.
fn reachable(path: &str) -> Answer<String> {
    let path = absolute(path);
    let is_below = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    if path == HOME || path == "/tmp" || path == "/workspace" {
        return Err(Problem::invalid(format!("path '{path}' is a directory")));
    }
    if path.contains('\0') || !(is_below(HOME) || is_below("/tmp") || is_below("/workspace")) {
        return Err(Problem::invalid(format!(
            "path '{path}' is not below {HOME} or /tmp; read other files with commands"
        )));
    }
    Ok(path)
}

fn about(path: &str, error: cellblock_interpreter::Error) -> Problem {
    match error.refusal() {
        Some(("not_found", _)) => Problem::not_found(format!("path '{path}' does not exist")),
        Some(("not_regular", reason)) if reason.contains("directory") => {
            Problem::invalid(format!("path '{path}' is a directory"))
        }
        Some((_, reason)) if reason.contains("No space") => Problem::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "not enough disk space available",
        ),
        Some((_, reason)) => Problem::invalid(format!("path '{path}': {reason}")),
        None => error.into(),
    }
}
