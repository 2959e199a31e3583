//! Stored files: lists, bytes, and what is known of them.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State as Given};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

use super::access::QueryCaller;
use super::error::Problem;
use super::names::check_id;
use super::state::State;
use super::storage::StoredFile;
use crate::instant::instant;

pub(super) async fn list(
    Given(state): Given<State>,
    QueryCaller { reader }: QueryCaller,
    Path(session): Path<String>,
) -> Result<Json<Value>, Problem> {
    check_id(&session)?;
    let files = state.storage.list(&session, &reader)?;
    let listed: Vec<_> = files.iter().map(|file| described(&session, file)).collect();
    Ok(Json(json!(listed)))
}

/// Says when a file was stored, by which a client finds out whether it is still there.
pub(super) async fn metadata(
    Given(state): Given<State>,
    QueryCaller { reader }: QueryCaller,
    Path((session, file)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let stored = find(&state, &session, &file, &reader)?;
    Ok(Json(described(&session, &stored)))
}

pub(super) async fn download(
    Given(state): Given<State>,
    QueryCaller { reader }: QueryCaller,
    Path((session, file)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let stored = find(&state, &session, &file, &reader)?;
    let content = state.host.interpreter.store().file(stored.artifact).await;
    let content = content.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "read a stored file");
        Problem::missing(format!("file `{file}` is no longer kept; make it again"))
    })?;
    let mut headers = HeaderMap::new();
    let fixed = [
        (CONTENT_TYPE, "application/octet-stream"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(stored.bytes));
    let name = stored.name.rsplit('/').next().unwrap_or_default();
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(content)));
    Ok((headers, body).into_response())
}

pub(super) async fn delete(
    Given(state): Given<State>,
    QueryCaller { reader }: QueryCaller,
    Path((session, file)): Path<(String, String)>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    find(&state, &session, &file, &reader)?;
    state.storage.delete(&session, &file, &reader)?;
    Ok((StatusCode::OK, Json(json!({"message": "success"}))))
}

fn find(
    state: &State,
    session: &str,
    file: &str,
    reader: &super::access::Reader,
) -> Result<StoredFile, Problem> {
    check_id(session)?;
    check_id(file)?;
    state.storage.get(session, file, reader)
}

fn described(session: &str, file: &StoredFile) -> Value {
    let modified = instant(file.modified);
    json!({
        "id": file.id,
        "fileId": file.id,
        "name": file.name,
        "filename": file.name,
        "size": file.bytes,
        "storage_session_id": session,
        "session_id": session,
        "lastModified": modified,
        "metadata": {"original-filename": file.name},
    })
}
