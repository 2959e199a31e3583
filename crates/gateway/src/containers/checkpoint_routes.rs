//! `/v1/containers/{container}/checkpoints`, `…/rollback` and `…/events`, which OpenAI's containers
//! do not have.
//!
//! A rollback changes what is in the sandbox. Files that code has made meanwhile stay downloadable,
//! and files that a user has added since are put into the sandbox again before code runs.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use cellblock_interpreter::Error;
use cellblock_interpreter::session::checkpoints::{Checkpoint, NewCheckpoint, RolledBack};
use cellblock_interpreter::session::timeline::SessionEvent;
use serde_json::Value;

use super::{expired, run, unknown};
use crate::attended::attended;
use crate::json::{Json, deleted};
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::sessions::checkpoints::{CheckpointRequest, RollbackRequest};
use crate::state::containers::{ContainerState, HeldContainer};
use crate::state::{Caller, Gateway};

/// Note for a model that continues in a container that was rolled back.
const ROLLED_BACK: &str = "The user has rolled the sandbox back to an earlier moment. Variables and files \
                           are as they were then: what code after that moment changed is undone.";

pub(super) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/containers/{container}/checkpoints", get(list).post(create))
        .route(
            "/v1/containers/{container}/checkpoints/{checkpoint}",
            delete(remove),
        )
        .route("/v1/containers/{container}/events", get(events))
        .route("/v1/containers/{container}/rollback", post(roll_back))
}

async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
    Json(request): Json<CheckpointRequest>,
) -> Result<(StatusCode, Json<NewCheckpoint>), Problem> {
    let held = find(&gateway, &caller, &container).await?;
    held.enter(&gateway, &caller.owner).await?;
    let within = gateway.clone();
    let made = to_its_end(&gateway, async move {
        let mut state = held.state.lock().await;
        // With the files of its user.
        run::furnish(&within, &held, &mut state).await?;
        let made = held.session.checkpoint(request.name).await?;
        forget_others(&held, &mut state).await?;
        let placed = state.placed.clone();
        state.checkpoints.insert(made.checkpoint.id.clone(), placed);
        run::touch(&within, &held).await;
        Ok(made)
    });
    Ok((StatusCode::CREATED, Json(made.await?)))
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
) -> Result<Json<ListAnswer<Checkpoint>>, Problem> {
    let held = find(&gateway, &caller, &container).await?;
    Ok(Json(ListAnswer::new(held.session.checkpoints().await?)))
}

async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((container, checkpoint)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let held = find(&gateway, &caller, &container).await?;
    let wanted = checkpoint.clone();
    to_its_end(&gateway, async move {
        let mut state = held.state.lock().await;
        held.session.drop_checkpoint(wanted).await?;
        forget_others(&held, &mut state).await?;
        Ok(())
    })
    .await?;
    Ok(Json(deleted(&checkpoint, "container.checkpoint.deleted")))
}

async fn roll_back(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
    Json(request): Json<RollbackRequest>,
) -> Result<Json<RolledBack>, Problem> {
    let held = find(&gateway, &caller, &container).await?;
    let within = gateway.clone();
    let back = to_its_end(&gateway, async move {
        let mut state = held.state.lock().await;
        let back = held.session.roll_back(request.checkpoint).await?;
        if let Some(placed) = state.checkpoints.get(&back.checkpoint.id).cloned() {
            state.placed = placed;
        }
        held.tell_next(ROLLED_BACK);
        run::touch(&within, &held).await;
        Ok(back)
    });
    Ok(Json(back.await?))
}

async fn events(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
) -> Result<Json<ListAnswer<SessionEvent>>, Problem> {
    let held = find(&gateway, &caller, &container).await?;
    Ok(Json(ListAnswer::new(held.session.events())))
}

pub(super) async fn find(
    gateway: &Gateway,
    caller: &Caller,
    container: &str,
) -> Result<HeldContainer, Problem> {
    let owner = &caller.owner;
    if gateway.records.container(owner, container).await?.is_none() {
        return Err(unknown(container).into());
    }
    let held = gateway.containers.registry.hold(owner, container);
    Ok(held.ok_or_else(|| expired(container, "container_id"))?)
}

/// Does something to its end, whether or not the client still waits.
pub(super) async fn to_its_end<T: Send + 'static>(
    gateway: &Gateway,
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let done = attended(gateway, "finish the request", |_| async move { Some(work.await) });
    done.await
}

/// Forgets the files of checkpoints that were dropped.
async fn forget_others(held: &HeldContainer, state: &mut ContainerState) -> Result<(), Error> {
    let left = held.session.checkpoints().await?;
    state
        .checkpoints
        .retain(|id, _| left.iter().any(|it| it.id == *id));
    Ok(())
}
