//! `/files`: bytes of files.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest as _, Multipart, Query, Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cellblock_interpreter::hosting::uploads::Upload;
use cellblock_interpreter::{Error, json_error};
use cellblock_settings::clock::unix_seconds;
use futures_util::Stream;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

use super::super::body::read as read_body;
use super::super::error::{Answer, Problem};
use super::super::paths::{HOME, absolute, inside};
use super::super::place::{self, RequestSandbox};
use super::super::sandbox::HeldSandbox;
use super::super::secret::Operation;
use super::super::state::E2b;
use super::directory::ask;
use super::entry::entry;
use super::packed::unpacked;
use super::{metadata, outside};

/// Maximum number of files of one request.
const MOST: usize = 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileQuery {
    path: Option<String>,
    username: Option<String>,
    signature: Option<String>,
    signature_expiration: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct WriteAnswer {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compose {
    source_paths: Vec<String>,
    destination: String,
}

pub(super) async fn read(
    State(e2b): State<E2b>,
    named: Result<Query<FileQuery>, QueryRejection>,
    request: Request,
) -> Answer<Response> {
    let Query(named) = named.map_err(|error| Problem::invalid(json_error::describe(&error.body_text())))?;
    let (parts, _) = request.into_parts();
    let held = opened(&parts, &e2b, &named, Operation::Read).await?;
    let path = file_path(named.path.as_deref().unwrap_or_default())?;
    let opened = if is_of_session(&path) {
        let turn = held.turn().await?;
        match turn.session.open_file(inside(&path)).await {
            Err(error) if is_link(&error) => None,
            opened => Some(opened.map_err(|error| about(&path, error))?),
        }
    } else {
        None
    };
    let Some(opened) = opened else {
        return Ok((head(), outside::read(&held, &path).await?).into_response());
    };
    let mut headers = head();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(opened.bytes));
    let content = tokio::fs::File::from_std(opened.content);
    Ok((headers, Body::from_stream(ReaderStream::new(content))).into_response())
}

/// Returns the headers of an answer with a file.
fn head() -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ])
}

pub(super) async fn write(
    State(e2b): State<E2b>,
    named: Result<Query<FileQuery>, QueryRejection>,
    request: Request,
) -> Answer<Json<Vec<WriteAnswer>>> {
    let Query(named) = named.map_err(|error| Problem::invalid(json_error::describe(&error.body_text())))?;
    let (parts, body) = request.into_parts();
    let held = opened(&parts, &e2b, &named, Operation::Write).await?;
    let metadata = metadata::read(&parts.headers)?;
    let encoding = parts
        .headers
        .get(CONTENT_ENCODING)
        .map(|it| it.as_bytes().to_ascii_lowercase());
    let mut receiving = e2b.host.begin_upload(&held.kept.owner, &parts.headers).await?;
    let body = match encoding.as_deref() {
        None | Some(b"identity" | b"") => body,
        Some(b"gzip") => unpacked(body),
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
        let written = put(&mut receiving, &held, path, body, &metadata).await?;
        return Ok(Json(vec![written]));
    }
    let request = Request::from_parts(parts, body);
    let multipart = Multipart::from_request(request, &e2b).await;
    let mut multipart = multipart.map_err(|error| Problem::invalid(error.body_text()))?;
    let mut written = Vec::new();
    loop {
        let field = receiving.within(multipart.next_field()).await?;
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
        written.push(put(&mut receiving, &held, &path, field, &metadata).await?);
    }
    if written.is_empty() {
        return Err(Problem::invalid("the body has no part `file`"));
    }
    Ok(Json(written))
}

pub(super) async fn compose(RequestSandbox(held): RequestSandbox, body: Bytes) -> Answer<Json<Value>> {
    let request: Compose = read_body(&body)?;
    let paths = request.source_paths.iter().map(|path| file_path(path));
    let paths = paths.collect::<Answer<Vec<_>>>()?;
    let destination = file_path(&request.destination)?;
    let question = json!({"paths": paths, "destination": destination});
    Ok(Json(entry(&ask(&held, "change.compose", &question).await?)))
}

/// Returns the sandbox if the request has its token, or a signature for the path.
async fn opened(parts: &Parts, e2b: &E2b, named: &FileQuery, operation: Operation) -> Answer<HeldSandbox> {
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
            "the sandbox is secured; send its access token in the header `X-Access-Token`, or \
             sign the address",
        ));
    };
    let path = named.path.as_deref().unwrap_or_default();
    let user = named.username.as_deref().unwrap_or_default();
    let end = named.signature_expiration;
    let refused = if !access.signed(signature, path, operation, user, end) {
        "the signature is not that of this path, operation and user"
    } else if end.is_some_and(|end| end <= unix_seconds()) {
        // E2B's words, which clients compare.
        "signature is already expired"
    } else {
        return Ok(held);
    };
    Err(Problem::new(StatusCode::UNAUTHORIZED, refused))
}

/// Writes a file, from a spool: what is too large never reaches the sandbox.
async fn put<E: std::fmt::Display>(
    receiving: &mut Upload,
    held: &HeldSandbox,
    path: &str,
    content: impl Stream<Item = Result<Bytes, E>> + Unpin,
    metadata: &BTreeMap<String, String>,
) -> Answer<WriteAnswer> {
    let path = file_path(path)?;
    let received = receiving.receive(content).await?;
    if is_of_session(&path) {
        let turn = held.turn().await?;
        let put = turn.session.put_file(inside(&path), received.content).await;
        put.map_err(|error| about(&path, error))?;
    } else {
        outside::write(held, &path, received.content).await?;
    }
    // The file is a new one, without those of another that it replaces.
    if !metadata.is_empty() {
        let labels = json!({"path": path, "attributes": metadata});
        ask::<IgnoredAny>(held, "change.label", &labels).await?;
    }
    Ok(WriteAnswer {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        kind: "file",
        path,
        metadata: metadata.clone(),
    })
}

/// Returns the absolute path of a file.
fn file_path(path: &str) -> Answer<String> {
    let path = absolute(path);
    if path == HOME || path == "/tmp" || path == "/workspace" {
        return Err(Problem::invalid(format!("path '{path}' is a directory")));
    }
    if path.contains('\0') {
        return Err(Problem::invalid(format!(
            "path {path:?} contains a NUL character"
        )));
    }
    Ok(path)
}

/// Returns whether a path is below a folder whose files the session reads and writes.
fn is_of_session(path: &str) -> bool {
    let roots = [HOME, "/tmp", "/workspace"];
    roots
        .iter()
        .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')))
}

/// Returns whether a file was not opened because a link leads out of the session's folders.
fn is_link(error: &Error) -> bool {
    matches!(error.refusal(), Some(("symlink", _)))
}

fn about(path: &str, error: Error) -> Problem {
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
