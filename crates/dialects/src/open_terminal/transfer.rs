//! `/files/{upload,view,serve,mkdir,move,delete,archive,compare}`: what the file browser of a
//! person does, and no model.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Multipart, Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use cellblock_interpreter::egress::inbound::SEPARATE_ORIGIN;
use cellblock_interpreter::hosting::uploads::{SpooledUpload, Upload};
use cellblock_interpreter::mint;
use cellblock_interpreter::session::OpenedFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

use super::arguments::{json, query};
use super::chat::{Caller, OpenTerminal};
use super::commands::join;
use super::files::PathQuery;
use super::problem::Problem;
use super::workspace::perform;
use crate::files::{FileKind, FileRecord};

#[derive(Debug, Deserialize)]
pub(super) struct UploadQuery {
    directory: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct MoveRequest {
    source: String,
    destination: String,
}

#[derive(Debug, Deserialize)]
struct ArchiveRequest {
    paths: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize)]
struct CompareRequest {
    original: String,
    revised: String,
    #[serde(default)]
    ignore_whitespace: bool,
}

/// `POST /files/upload?directory=`: the part `file` of a form.
pub(super) async fn upload(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    form: Multipart,
) -> Result<Json<Value>, Problem> {
    let UploadQuery { directory } = query(&uri)?;
    let receiving = terminal.host.begin_upload(&caller.owner, &headers).await?;
    let (name, received) = receive(receiving, form).await?;
    let bytes = received.bytes;
    let held = terminal.chat(&caller).await?;
    let path = join(&join(&held.kept.cwd(), &directory), &name);
    held.session.put_file(&path, received.content).await?;
    Ok(Json(json!({"path": path, "size": bytes})))
}

/// Receives the file of a form, with its name.
async fn receive(mut receiving: Upload, mut form: Multipart) -> Result<(String, SpooledUpload), Problem> {
    let broken = |error: axum::extract::multipart::MultipartError| {
        Problem::new(
            error.status(),
            format!("the form is invalid: {}", error.body_text()),
        )
    };
    while let Some(part) = receiving.within(form.next_field()).await?.map_err(broken)? {
        if part.name() != Some("file") {
            continue;
        }
        let name = part.file_name().unwrap_or("upload").to_owned();
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        if matches!(name.as_str(), "" | "." | "..") || name.contains('\0') {
            return Err(Problem::invalid(format!("`{name}` is not the name of a file")));
        }
        return Ok((name, receiving.receive(part).await?));
    }
    Err(Problem::invalid("the form has no part `file`"))
}

/// `GET /files/view?path=`.
pub(super) async fn view(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let PathQuery { path } = query(&uri)?;
    show(&terminal, &caller, &path).await
}

/// `GET /files/serve/{path}`: the same, so that relative addresses of a page lead to the files beside it.
pub(super) async fn serve(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    show(&terminal, &caller, &format!("/{path}")).await
}

async fn show(terminal: &OpenTerminal, caller: &Caller, path: &str) -> Result<Response, Problem> {
    let held = terminal.chat(caller).await?;
    let (found, _): (FileRecord, _) = perform(&held, "content.about", &json!({ "path": path })).await?;
    let real = found
        .real
        .filter(|_| matches!(found.kind, FileKind::File | FileKind::Other));
    let path = real.ok_or_else(|| Problem::missing(format!("file not found: {path}")))?;
    let opened = held.session.open_file(path).await?;
    let media_type = found.media_type.and_then(|it| HeaderValue::from_str(&it).ok());
    let unknown = HeaderValue::from_static("application/octet-stream");
    Ok(download(opened, media_type.unwrap_or(unknown)))
}

fn download(opened: OpenedFile, media_type: HeaderValue) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(opened.bytes));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, SEPARATE_ORIGIN);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let content = tokio::fs::File::from_std(opened.content);
    (headers, Body::from_stream(ReaderStream::new(content))).into_response()
}

/// `POST /files/archive`: files and directories as one ZIP file.
pub(super) async fn archive(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked: ArchiveRequest = json(&body)?;
    let held = terminal.chat(&caller).await?;
    // A program that reaches its timeout leaves what it has written, so its file is removed here.
    let path = format!("/tmp/{}.zip", mint("archive-"));
    let arguments = json!({"paths": asked.paths, "packed": path});
    let packed = async {
        let (made, _) = perform::<Value>(&held, "change.archive", &arguments).await?;
        let opened = held.session.open_file(path.as_str()).await?;
        Ok::<_, Problem>((made, opened))
    };
    let packed = packed.await;
    let _ = held.session.remove_file(path.as_str()).await;
    let (made, opened) = packed?;
    let Some(name) = made["name"].as_str() else {
        return Err(Problem::new(
            StatusCode::BAD_GATEWAY,
            "the sandbox made no archive",
        ));
    };
    let mut response = download(opened, HeaderValue::from_static("application/zip"));
    let safe: String = name
        .chars()
        .filter(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it))
        .collect();
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{safe}.zip\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $operation:literal, $request:ty, $shown:expr) => {
        $(#[$doc])*
        pub(super) async fn $name(
            State(terminal): State<OpenTerminal>,
            caller: Caller,
            body: Bytes,
        ) -> Result<Json<Value>, Problem> {
            let asked: $request = json(&body)?;
            terminal.operate(&caller, $operation, &asked).await.map($shown).map(Json)
        }
    };
}

operation!(
    /// `POST /files/mkdir`.
    mkdir, "change.make", PathQuery, |made: Value| json!({"path": made["path"]})
);
operation!(
    /// `POST /files/move`.
    rename, "change.move", MoveRequest,
    |moved: Value| json!({"source": moved["source"], "destination": moved["path"]})
);
operation!(
    /// `POST /files/compare`: what differs between two text files.
    compare, "content.compare", CompareRequest, |compared: Value| compared
);

/// `DELETE /files/delete?path=`.
pub(super) async fn delete(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let asked: PathQuery = query(&uri)?;
    terminal.operate(&caller, "change.remove", &asked).await.map(Json)
}
