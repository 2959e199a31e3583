//! `POST /upload` and `/upload/batch`: files into a storage session.

use axum::Json;
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{Multipart, State as Given};
use axum::http::{HeaderMap, StatusCode};
use cellblock_interpreter::artifact::{ArtifactDescription, Kind};
use cellblock_interpreter::hosting::uploads::{SpooledUpload, Upload as Receiving, UploadError};
use chrono::Utc;
use serde_json::{Value, json};

use super::access::{Caller, Resource};
use super::error::Problem;
use super::names;
use super::state::State;
use super::storage::StoredFile;

/// Maximum number of files in one upload.
const MAX_FILES: usize = 200;
/// Maximum size of a field other than a file.
const MAX_FIELD: u64 = 4096;

/// A file of an upload, or why it was not taken.
type UploadResult = Result<StoredFile, (String, Problem)>;

pub(super) async fn one(
    Given(state): Given<State>,
    caller: Caller,
    headers: HeaderMap,
    parts: Result<Multipart, MultipartRejection>,
) -> Result<Json<Value>, Problem> {
    let receiving = state.host.begin_upload(&caller.owner, &headers).await?;
    let upload = receive(&state, &caller, receiving, parts, 1).await?;
    let (resource, mut taken) = (upload.resource, upload.taken);
    let file = taken
        .pop()
        .ok_or_else(|| Problem::invalid("the upload has no part `file`"))?;
    let file = file.map_err(|(_, problem)| problem)?;
    let session = names::id();
    let reader = caller.reader(&resource)?;
    let files = json!([{"fileId": file.id, "filename": file.name}]);
    let owner = caller.owner.name();
    state.storage.add(owner, &session, &reader, vec![file])?;
    Ok(Json(
        json!({"message": "success", "storage_session_id": session, "session_id": session, "files": files}),
    ))
}

/// Takes the files that can be taken, and says of each what came of it.
pub(super) async fn batch(
    Given(state): Given<State>,
    caller: Caller,
    headers: HeaderMap,
    parts: Result<Multipart, MultipartRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let receiving = state.host.begin_upload(&caller.owner, &headers).await?;
    let upload = receive(&state, &caller, receiving, parts, MAX_FILES).await?;
    if upload.taken.is_empty() {
        return Err(Problem::invalid("the upload has no part `file`"));
    }
    let session = names::id();
    let (mut stored, mut entries) = (Vec::new(), Vec::new());
    for taken in upload.taken {
        match taken {
            Ok(file) => {
                entries.push(json!({"status": "success", "fileId": file.id, "filename": file.name}));
                stored.push(file);
            }
            Err((name, problem)) => {
                let error = problem.text();
                entries.push(json!({"status": "error", "filename": name, "error": error}));
            }
        }
    }
    let succeeded = stored.len();
    let failed = entries.len() - succeeded;
    if succeeded > 0 {
        let reader = caller.reader(&upload.resource)?;
        state
            .storage
            .add(caller.owner.name(), &session, &reader, stored)?;
    }
    let (status, message) = match (succeeded, failed) {
        (_, 0) => (StatusCode::OK, "success"),
        (0, _) => (StatusCode::BAD_REQUEST, "error"),
        _ => (StatusCode::OK, "partial_success"),
    };
    let mut answer = json!({
        "message": message,
        "storage_session_id": session,
        "session_id": session,
        "files": entries,
        "succeeded": succeeded,
        "failed": failed,
    });
    if upload.limited {
        answer["filesLimitReached"] = json!(true);
        answer["maxFiles"] = json!(MAX_FILES);
    }
    Ok((status, Json(answer)))
}

#[derive(Debug, Default)]
struct FormUpload {
    resource: Resource,
    taken: Vec<UploadResult>,
    /// Whether there were more files than are taken.
    limited: bool,
}

async fn receive(
    state: &State,
    caller: &Caller,
    mut receiving: Receiving,
    parts: Result<Multipart, MultipartRejection>,
    most: usize,
) -> Result<FormUpload, Problem> {
    let mut parts = parts.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
    let mut upload = FormUpload::default();
    let mut fields = Resource::default();
    while let Some(mut part) = receiving
        .within(parts.next_field())
        .await?
        .map_err(|error| broken(&error))?
    {
        let field = part.name().unwrap_or_default().to_owned();
        if part.file_name().is_none() && field != "file" {
            let value = receiving.within(text(&mut part)).await??;
            match field.as_str() {
                "kind" => fields.kind = Some(value),
                "id" => fields.id = Some(value),
                "version" => fields.version = Some(value),
                _ => {}
            }
            continue;
        }
        // Checked before the bytes are read: a client that is not let in sends nothing for long.
        caller.reader(&fields)?;
        if upload.taken.len() >= most {
            upload.limited = true;
            break;
        }
        let given = part.file_name().unwrap_or_default().to_owned();
        let taken = match receiving.receive(part).await {
            Ok(received) => store(state, &given, received).await,
            // The next one may be smaller.
            Err(error @ UploadError::TooLarge { .. }) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        upload.taken.push(taken.map_err(|problem| (given, problem)));
    }
    upload.resource = fields;
    Ok(upload)
}

async fn store(state: &State, given: &str, received: SpooledUpload) -> Result<StoredFile, Problem> {
    let name = names::file_name(given)?;
    let about = ArtifactDescription {
        kind: Kind::File,
        media_type: "application/octet-stream".to_owned(),
        origin: None,
    };
    let store = state.host.interpreter.store();
    let artifact = store.put_file(received.content, &about).await;
    let artifact = artifact.map_err(|error| Problem::server("store a file", &error))?;
    Ok(StoredFile {
        id: names::id(),
        name,
        artifact,
        bytes: received.bytes,
        modified: Utc::now(),
    })
}

async fn text(part: &mut Field<'_>) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(chunk) = part.chunk().await.map_err(|error| broken(&error))? {
        text.extend_from_slice(&chunk);
        if text.len() as u64 > MAX_FIELD {
            return Err(Problem::invalid(format!(
                "a field has more than {MAX_FIELD} bytes, which is the limit"
            )));
        }
    }
    String::from_utf8(text).map_err(|_| Problem::invalid("a field is not UTF-8"))
}

fn broken(error: &MultipartError) -> Problem {
    Problem::new(error.status(), error.body_text())
}
