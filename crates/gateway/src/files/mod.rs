//! `/v1/files`: what clients upload, for containers and for messages.

mod anthropic;
pub(crate) mod attach;
pub(crate) mod fetch;
pub(crate) mod media;
pub(crate) mod path;
pub(crate) mod upload;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::response::Response;
use axum::routing::get;
use cellblock_agent::wire::{ApiError, ErrorKind, Ids};
use serde_json::{Value, json};

use crate::anthropic::IsAnthropic;
use crate::json::{Json, deleted};
use crate::listing::{self, QueryParameters};
use crate::now_ms;
use crate::problem::Problem;
use crate::records::{ContainerFileRow, FileRow};
use crate::state::{Caller, Gateway};

/// The most files in one answer, also where nothing is said.
const PAGE: usize = 10_000;
/// Prefix of the ids of files that code made.
const MADE: &str = "cfile_";
/// Purposes of files. Only clients care.
const PURPOSES: [&str; 6] = ["assistants", "batch", "evals", "fine-tune", "user_data", "vision"];
/// After how many seconds a file can expire.
const EXPIRES: std::ops::RangeInclusive<i64> = 3600..=2_592_000;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/files", get(list).post(create))
        .route("/v1/files/{file}", get(retrieve).delete(delete))
        .route("/v1/files/{file}/content", get(content))
        // Uploads are counted while they come.
        .layer(DefaultBodyLimit::disable())
}

/// A file of an owner, whose id stands at `param`.
pub(crate) async fn find(gateway: &Gateway, owner: &str, id: &str, param: &str) -> Result<FileRow, ApiError> {
    let row = if is_made(id) {
        let made = gateway.records.made_file(owner, id).await?;
        made.map(|row| made_file(&row))
    } else {
        gateway.records.file(owner, id, now_ms()).await?
    };
    row.ok_or_else(|| ApiError {
        kind: ErrorKind::NotFound,
        code: Some("file_not_found".to_owned()),
        message: format!("there is no file `{id}`"),
        param: Some(param.to_owned()),
    })
}

/// Forgets a file; says whether it was there. Containers that have it keep it.
pub(crate) async fn remove(gateway: &Gateway, owner: &str, id: &str) -> Result<bool, ApiError> {
    let removed = if is_made(id) {
        gateway.records.remove_container_file(owner, id).await?
    } else {
        gateway.records.remove_file(owner, id).await?
    };
    if removed {
        fetch::unpin(gateway, id).await;
    }
    Ok(removed)
}

/// Whether an id is that of a file that code made, which clients of the Messages API know by its id alone.
fn is_made(id: &str) -> bool {
    id.starts_with(MADE)
}

/// Returns a container's file as one that was uploaded.
fn made_file(row: &ContainerFileRow) -> FileRow {
    FileRow {
        id: row.id.clone(),
        owner: row.owner.clone(),
        filename: row.path.rsplit('/').next().unwrap_or_default().to_owned(),
        purpose: "assistants_output".to_owned(),
        bytes: row.bytes,
        sha256: row.sha256.clone(),
        created_ms: row.created_ms,
        expires_ms: None,
    }
}

async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let uploaded = upload::receive(&gateway, &caller, request).await?;
    let now = now_ms();
    let (purpose, expires) = if is_anthropic {
        let purpose = anthropic::PURPOSE.to_owned();
        (purpose, anthropic::expires(&uploaded.fields)?)
    } else {
        (purpose(&uploaded.fields)?, expires(&uploaded.fields)?)
    };
    let row = FileRow {
        // A hyphen, as OpenAI's have.
        id: Ids::random().mint("file").replacen('_', "-", 1),
        owner: caller.owner,
        filename: path::file_name(&uploaded.name, "file")?,
        purpose,
        bytes: i64::try_from(uploaded.bytes).unwrap_or(i64::MAX),
        sha256: uploaded.sha256,
        created_ms: now,
        expires_ms: expires.map(|seconds| now + seconds * 1000),
    };
    fetch::pin(&gateway, &row.id, &row.sha256).await?;
    if let Err(error) = gateway.records.add_file(row.clone()).await {
        fetch::unpin(&gateway, &row.id).await;
        return Err(error.into());
    }
    Ok(Json(shown(&row, is_anthropic)))
}

fn purpose(fields: &BTreeMap<String, String>) -> Result<String, ApiError> {
    let Some(purpose) = fields.get("purpose") else {
        let message = "`purpose` is required and missing";
        return Err(ApiError::invalid(
            "purpose",
            "missing_required_parameter",
            message,
        ));
    };
    if PURPOSES.contains(&purpose.as_str()) {
        return Ok(purpose.clone());
    }
    let message = format!(
        "`purpose` is `{purpose}`; it can be one of {}",
        PURPOSES.join(", ")
    );
    Err(ApiError::invalid("purpose", "invalid_value", message))
}

fn expires(fields: &BTreeMap<String, String>) -> Result<Option<i64>, ApiError> {
    let (anchor, seconds) = (
        fields.get("expires_after[anchor]"),
        fields.get("expires_after[seconds]"),
    );
    let invalid = |param: &str, message: String| Err(ApiError::invalid(param, "invalid_value", message));
    match (anchor.map(String::as_str), seconds) {
        (None, None) => Ok(None),
        (Some("created_at"), Some(text)) => {
            let seconds = text
                .parse::<i64>()
                .ok()
                .filter(|seconds| EXPIRES.contains(seconds));
            if seconds.is_some() {
                return Ok(seconds);
            }
            let (least, most) = (EXPIRES.start(), EXPIRES.end());
            let message = format!("`expires_after.seconds` is `{text}`; it can be {least} to {most}");
            invalid("expires_after.seconds", message)
        }
        _ => invalid(
            "expires_after",
            "`expires_after` has to have `anchor`, which is `created_at`, and `seconds`".to_owned(),
        ),
    }
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    if is_anthropic {
        let page = anthropic::page(&query)?;
        let found = gateway.records.files(&caller.owner, None, page, now_ms());
        return Ok(Json(anthropic::listed(found.await?)?));
    }
    let page = listing::page(&query, PAGE, PAGE)?;
    let purpose = query.get("purpose").cloned();
    let found = gateway
        .records
        .files(&caller.owner, purpose, page, now_ms())
        .await?;
    Ok(Json(listing::told(found, object)?))
}

async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find(&gateway, &caller.owner, &id, "file_id").await?;
    Ok(Json(shown(&row, is_anthropic)))
}

async fn content(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let row = find(&gateway, &caller.owner, &id, "file_id").await?;
    Ok(fetch::send(&gateway, &row.filename, row.bytes, &row.sha256).await?)
}

async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    find(&gateway, &caller.owner, &id, "file_id").await?;
    remove(&gateway, &caller.owner, &id).await?;
    Ok(Json(if is_anthropic {
        anthropic::deleted(&id)
    } else {
        deleted(&id, "file")
    }))
}

/// Returns a file in the form of the client's API.
fn shown(row: &FileRow, is_anthropic: bool) -> Value {
    if is_anthropic {
        anthropic::object(row)
    } else {
        object(row)
    }
}

/// Returns a file as clients receive it.
fn object(row: &FileRow) -> Value {
    json!({
        "id": row.id,
        "object": "file",
        "bytes": row.bytes,
        "created_at": row.created_ms / 1000,
        "expires_at": row.expires_ms.map(|ms| ms / 1000),
        "filename": row.filename,
        "purpose": row.purpose,
        "status": "processed",
        "status_details": null,
    })
}
