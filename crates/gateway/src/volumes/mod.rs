//! `/v1/volumes`: folders of files that outlive the sessions that write them.
//!
//! ```text
//! sessions::create ──> open ──manifest──> the session writes the files into its sandboxes
//!                                │
//!                      keep <────┘ saves: contents are pinned in the artifact store, then the records get the manifest
//! ```

mod keep;
mod open;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::{Json, deleted};
use crate::listing::{self, Queried};
use crate::problem::Problem;
use crate::records::{VolumeOpening, VolumeRemoval, VolumeRow};
use crate::state::{Caller, Gateway};

pub(crate) use open::{VolumeRequest, open};

/// Maximum and default number of volumes in one answer.
const PAGE: usize = 100;
const USUAL: usize = 20;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/volumes", get(list))
        .route("/v1/volumes/{name}", get(read).delete(remove))
}

/// A volume.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VolumeAnswer {
    id: String,
    /// `volume`.
    object: &'static str,
    name: String,
    /// In seconds since 1970.
    created_at: i64,
    /// When the last revision was saved, in seconds since 1970; absent if nothing was saved yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_at: Option<i64>,
    /// Number of the last revision; 0 if nothing was saved yet.
    revision: i64,
    /// Size of all files.
    bytes: i64,
    /// Number of files.
    files: i64,
    /// The last session that wrote the volume; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_writer: Option<VolumeWriterAnswer>,
}

/// A session that writes or wrote a volume.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VolumeWriterAnswer {
    /// ID of the session.
    session: String,
    /// State of its changes: `writing` (the session holds the volume), `saved` (it ended and all were
    /// saved), `incomplete` (it ended and the last ones could not be saved), `lost` (its server ended;
    /// changes after the last revision are lost).
    state: String,
}

impl VolumeAnswer {
    fn of(row: &VolumeRow) -> Self {
        let row = row.clone();
        Self {
            id: row.id,
            object: "volume",
            name: row.name,
            created_at: row.created_ms / 1000,
            saved_at: row.saved_ms.map(|ms| ms / 1000),
            revision: row.revision,
            bytes: row.bytes,
            files: row.files,
            last_writer: row
                .writer
                .zip(row.state)
                .map(|(session, state)| VolumeWriterAnswer { session, state }),
        }
    }
}

/// Lists the caller's volumes.
#[utoipa::path(
    get, operation_id = "list_volumes", path = "/v1/volumes", tag = "volumes",
    params(
        ("after" = Option<String>, Query, description = "ID of the volume after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Maximum number of volumes, 1 to 100; by default 20"),
        ("order" = Option<String>, Query, description = "`desc` (the newest first, the default) or `asc`"),
    ),
    responses(
        (status = 200, description = "A page of volumes; `has_more` says whether others follow `last_id`", body = crate::openapi::VolumeList),
        (status = 400, description = "A parameter is invalid", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    query: Queried,
) -> Result<Json<Value>, Problem> {
    let page = listing::page(&query, PAGE, USUAL)?;
    let found = gateway.records.volumes(&caller.owner, page).await?;
    Ok(Json(listing::told(found, |row| json!(VolumeAnswer::of(row)))?))
}

/// A volume.
#[utoipa::path(
    get, operation_id = "get_volume", path = "/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "The volume", body = crate::openapi::Volume),
        (status = 404, description = "The caller has no such volume", body = crate::openapi::Error),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<VolumeAnswer>, Problem> {
    match gateway.records.read_volume(&caller.owner, &name).await? {
        VolumeOpening::Opened(row, _) => Ok(Json(VolumeAnswer::of(&row))),
        _ => Err(missing(&name)),
    }
}

/// Deletes a volume with its files. Sessions that read it keep their copies.
#[utoipa::path(
    delete, operation_id = "delete_volume", path = "/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "It was deleted", body = crate::openapi::Deleted),
        (status = 404, description = "The caller has no such volume", body = crate::openapi::Error),
        (status = 409, description = "A session writes it", body = crate::openapi::Error),
    )
)]
pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = match gateway.records.remove_volume(&caller.owner, &name).await? {
        VolumeRemoval::Removed(row) => row,
        VolumeRemoval::Writing(row) => return Err(open::held(&row, "delete this session first")),
        VolumeRemoval::Missing => return Err(missing(&name)),
    };
    // The records go first: contents that nothing names cost space, and nothing else.
    if let Err(error) = gateway.store.unpin(&row.id).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            volume = row.id,
            "release the contents of a volume"
        );
    }
    Ok(Json(deleted(&row.id, "volume.deleted")))
}

fn missing(name: &str) -> Problem {
    let message = format!("there is no volume {name:?}; a session with \"volume\": {name:?} creates it");
    Problem::missing("volume_not_found", message)
}
