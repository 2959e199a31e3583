//! `/v1/sessions/{id}/files`: files of a session's sandbox, up and down.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::execution::SkippedFile;
use cellblock_interpreter::hosting::uploads::DeclaredSize;
use cellblock_interpreter::session::ListedFile;
use serde::Serialize;
use tokio_util::io::ReaderStream;

use super::answer::DeletionAnswer;
use crate::artifacts::{is_active, type_of};
use crate::json::Json;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Folders that are listed.
const ROOTS: [&str; 2] = ["/workspace", "/tmp/output"];
/// The most files of each that are listed.
const LISTED: u32 = 1000;
/// Inputs and datasets, which have routes of their own.
const DATA: &str = "/tmp/data";

/// Files of a sandbox.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FileList {
    /// `list`.
    object: &'static str,
    /// Regular files below `/workspace` and `/tmp/output`.
    data: Vec<ListedFile>,
    /// Files that are not listed, with reasons.
    skipped: Vec<SkippedFile>,
    /// Whether there are more files than are listed.
    has_more: bool,
}

/// A file that was written.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FileWritten {
    /// `session.file`.
    object: &'static str,
    /// Its path in the sandbox.
    path: String,
    /// Its size.
    bytes: u64,
}

/// Lists the files that code created.
#[utoipa::path(
    get, operation_id = "list_files", path = "/v1/sessions/{id}/files", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The files below `/workspace` and `/tmp/output`",
            body = crate::openapi::FileList),
        (status = 404, description = "There is no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<FileList>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let _turn = held.turn().await?;
    let (mut data, mut skipped, mut total) = (Vec::new(), Vec::new(), 0);
    for root in ROOTS {
        let mut listing = held.session.list_files(root, LISTED).await?;
        data.append(&mut listing.files);
        skipped.append(&mut listing.skipped);
        total += listing.total;
    }
    Ok(Json(FileList {
        object: "list",
        has_more: total > data.len() as u64,
        data,
        skipped,
    }))
}

/// Reads a file.
#[utoipa::path(
    get, operation_id = "read_file", path = "/v1/sessions/{id}/files/{path}", tag = "sessions",
    params(
        ("id" = String, Path),
        (
            "path" = String,
            Path,
            description = "Path in the sandbox without the first slash: `workspace/a.csv`, \
                           `tmp/output/b.png`"
        ),
    ),
    responses(
        (
            status = 200,
            description = "Its bytes. Types that a browser might execute are sent as attachments."
        ),
        (status = 304, description = "`If-None-Match` matches its version"),
        (status = 404, description = "There is no such session or file", body = crate::openapi::Error),
    )
)]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let path = absolute(&path)?;
    let opened = {
        let _turn = held.turn().await?;
        held.session.open_file(&path).await?
    };
    let mut answer = HeaderMap::new();
    let tag = format!("\"{}\"", opened.version);
    if let Ok(tag) = HeaderValue::try_from(&tag) {
        answer.insert(ETAG, tag);
    }
    let asked = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if asked.is_some_and(|asked| asked.contains(&tag)) {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    let media_type = type_of(&path);
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.insert(CONTENT_LENGTH, HeaderValue::from(opened.bytes));
    answer.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    if is_active(media_type) {
        answer.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    let content = tokio::fs::File::from_std(opened.content);
    Ok((answer, Body::from_stream(ReaderStream::new(content))).into_response())
}

/// Writes a file and creates missing folders.
#[utoipa::path(
    put, operation_id = "write_file", path = "/v1/sessions/{id}/files/{path}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("path" = String, Path,
            description = "Path in the sandbox without the first slash: `workspace/a.csv`"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "It was written", body = crate::openapi::FileWritten),
        (status = 400, description = "The path is not a file path, or the sandbox has no space left",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such session", body = crate::openapi::Error),
        (status = 408, description = "It took longer than `uploads.timeout`", body = crate::openapi::Error),
        (status = 413, description = "It is too large", body = crate::openapi::Error),
        (
            status = 429,
            description = "A quota of the key is used up, or too many bytes are being received",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn put(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FileWritten>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let path = writable(&path)?;
    let mut max = gateway.max_upload();
    max.bytes = max.bytes.min(held.terms.limits.file_bytes);
    let size = DeclaredSize::of(&headers);
    let mut upload = gateway.begin_upload(&caller, size, max).await?;
    let received = upload.receive(body.into_data_stream()).await?;
    let _turn = held.turn().await?;
    held.session.put_file(&path, received.content).await?;
    Ok(Json(FileWritten {
        object: "session.file",
        path,
        bytes: received.bytes,
    }))
}

/// Removes a file.
#[utoipa::path(
    delete, operation_id = "delete_file", path = "/v1/sessions/{id}/files/{path}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("path" = String, Path,
            description = "Path in the sandbox without the first slash: `workspace/a.csv`"),
    ),
    responses(
        (status = 200, description = "It was removed", body = crate::openapi::Deleted),
        (status = 404, description = "There is no such session or file", body = crate::openapi::Error),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
) -> Result<Json<DeletionAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let path = writable(&path)?;
    let _turn = held.turn().await?;
    held.session.remove_file(&path).await?;
    Ok(Json(DeletionAnswer::new("session.file", path)))
}

/// The path in the sandbox. The guest judges it; here it is only made sure that it is one of a file
/// that a route is for.
fn absolute(path: &str) -> Result<String, Problem> {
    let path = format!("/{}", path.trim_start_matches('/'));
    let inside = path.starts_with("/workspace/") || path.starts_with("/tmp/");
    if inside && !path.contains('\0') {
        return Ok(path);
    }
    Err(Problem::invalid(
        "path",
        "name a file below `workspace/` or `tmp/`, such as `workspace/a.csv`",
    ))
}

fn writable(path: &str) -> Result<String, Problem> {
    let path = absolute(path)?;
    // However it is spelled: the guest takes `//` and `.` for nothing.
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let plain = parts.fold(String::new(), |all, part| all + "/" + part);
    if plain == DATA || plain.starts_with(&format!("{DATA}/")) {
        return Err(Problem::invalid(
            "path",
            "inputs and datasets are read-only; use the routes `inputs` and `datasets`",
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_one_of_the_two_folders_and_data_is_not_written() {
        assert_eq!(absolute("workspace/a/b.csv").unwrap(), "/workspace/a/b.csv");
        assert_eq!(absolute("/tmp/output/x").unwrap(), "/tmp/output/x");
        for outside in ["", "etc/passwd", "a.csv", "workspace", "tmp", "workspaces/a"] {
            assert!(absolute(outside).is_err(), "{outside:?}");
        }
        for data in ["tmp/data/a", "tmp//data/a", "tmp/./data/a", "tmp/data"] {
            assert!(writable(data).is_err(), "{data:?}");
        }
        assert!(writable("tmp/database").is_ok());
    }
}
