//! `/v1/volumes`: folders of files that outlive the sessions that write them.
//!
//! ```text
//! sessions::create ──> open ──manifest──> the session writes the files into its sandboxes
//!                                │
//!                      keep <────┘ saves: contents are pinned in the artifact store, then the records get the manifest
//! ```

mod answer;
mod keep;
mod open;
mod operate;
mod shelf;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use serde_json::{Value, json};

use crate::json::{Json, deleted};
use crate::listing::{self, QueryParameters};
use crate::problem::Problem;
use crate::records::{VolumeOpening, VolumeRemoval};
use crate::state::{Caller, Gateway};

pub use answer::{VolumeAnswer, VolumeWriterAnswer};
pub(crate) use open::{VolumeRequest, open};
pub use operate::{OwnedVolume, Volumes};
pub use shelf::OwnerVolumes;

/// Maximum and default number of volumes in one answer.
const PAGE: usize = 100;
const USUAL: usize = 20;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/volumes", get(list))
        .route("/v1/volumes/{name}", get(read).delete(remove))
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
        (
            status = 200,
            description = "A page of volumes; `has_more` says whether others follow `last_id`",
            body = crate::openapi::VolumeList
        ),
        (status = 400, description = "A parameter is invalid", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    query: QueryParameters,
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
    operate::forget_contents(&gateway.store, &row.id).await;
    Ok(Json(deleted(&row.id, "volume.deleted")))
}

fn missing(name: &str) -> Problem {
    let message = format!("there is no volume {name:?}; a session with \"volume\": {name:?} creates it");
    Problem::missing("volume_not_found", message)
}
