//! `/v1/sessions/{id}/checkpoints` and `/rollback`: a session's variables and files of earlier moments.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use cellblock_interpreter::session::checkpoints::{Checkpoint, NewCheckpoint, RolledBack};
use serde::Deserialize;

use super::answer::DeletionAnswer;
use super::run::attended;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::lock;
use crate::state::{Caller, Gateway};

/// A checkpoint to make.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CheckpointRequest {
    /// Name, by which it can be used instead of its ID: 1 to 64 letters, digits, `-`, `_` or `.`.
    pub(crate) name: Option<String>,
}

/// Checkpoint to roll back to.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackRequest {
    /// ID or name of the checkpoint.
    pub(crate) checkpoint: String,
}

/// Keeps the variables and files of a session as they are now. A session keeps at most 8
/// checkpoints; the oldest makes room.
#[utoipa::path(
    post, operation_id = "create_checkpoint", path = "/v1/sessions/{id}/checkpoints", tag = "sessions",
    params(("id" = String, Path)),
    request_body = CheckpointRequest,
    responses(
        (status = 201, description = "The checkpoint, and the one that it replaced",
            body = crate::openapi::NewCheckpoint),
        (status = 400, description = "The name is not valid or taken, or the backend has no checkpoints",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
        (
            status = 409,
            description = "The session has something that a checkpoint cannot hold, such as threads; \
                           nothing has changed",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<CheckpointRequest>,
) -> Result<(StatusCode, Json<NewCheckpoint>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let kept = attended(&gateway, turn, async move {
        let kept = held.session.checkpoint(request.name).await?;
        let left = held.session.checkpoints().await?;
        let mut cells = lock(&held.cells);
        cells.retain(&left);
        cells.keep(&kept.checkpoint.id);
        drop(cells);
        Ok(kept)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(kept)))
}

/// Lists the checkpoints of a session, the oldest first.
#[utoipa::path(
    get, operation_id = "list_checkpoints", path = "/v1/sessions/{id}/checkpoints", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The checkpoints", body = crate::openapi::CheckpointList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<Checkpoint>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let session = held.session.clone();
    let kept = attended(&gateway, turn, async move { Ok(session.checkpoints().await?) }).await?;
    Ok(Json(ListAnswer::new(kept)))
}

/// Drops a checkpoint and frees its memory.
#[utoipa::path(
    delete, operation_id = "delete_checkpoint", path = "/v1/sessions/{id}/checkpoints/{checkpoint}",
    tag = "sessions",
    params(
        ("id" = String, Path),
        ("checkpoint" = String, Path, description = "ID or name of the checkpoint"),
    ),
    responses(
        (status = 200, description = "It was dropped", body = crate::openapi::Deleted),
        (status = 404, description = "The caller has no such session, or the session no such checkpoint",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, checkpoint)): Path<(String, String)>,
) -> Result<Json<DeletionAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let wanted = checkpoint.clone();
    attended(&gateway, turn, async move {
        held.session.drop_checkpoint(wanted).await?;
        let left = held.session.checkpoints().await?;
        lock(&held.cells).retain(&left);
        Ok(())
    })
    .await?;
    Ok(Json(DeletionAnswer::new("session.checkpoint", checkpoint)))
}

/// Makes the variables and files of a session what they were at a checkpoint, and ends its
/// processes. All checkpoints are kept.
#[utoipa::path(
    post, operation_id = "roll_back_session", path = "/v1/sessions/{id}/rollback", tag = "sessions",
    params(("id" = String, Path)),
    request_body = RollbackRequest,
    responses(
        (status = 200, description = "The session is as it was", body = crate::openapi::RolledBack),
        (status = 404, description = "The caller has no such session, or the session no such checkpoint",
            body = crate::openapi::Error),
        (
            status = 409,
            description = "Code of the session has ended the process that held the checkpoint; nothing \
                           has changed",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn roll_back(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<RollbackRequest>,
) -> Result<Json<RolledBack>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let back = attended(&gateway, turn, async move {
        let back = held.session.roll_back(request.checkpoint).await?;
        lock(&held.cells).go_back(&back.checkpoint.id);
        Ok(back)
    });
    Ok(Json(back.await?))
}
