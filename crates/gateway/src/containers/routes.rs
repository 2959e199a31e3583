//! `/v1/containers`.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use cellblock_agent::wire::{ApiError, Ids, SkillRequest};
use serde_json::Value;

use super::make::ContainerPlan;
use super::object::{self, Create};
use super::{checkpoint_routes, file_routes, fork, run, sweep, unknown};
use crate::files::attach::Attachments;
use crate::json::{Json, deleted};
use crate::listing::{self, QueryParameters};
use crate::now_ms;
use crate::problem::Problem;
use crate::skills;
use crate::state::network::AllowedNetwork;
use crate::state::{Caller, Gateway};

/// The most containers in one answer, and how many there are where nothing is said.
const PAGE: (usize, usize) = (100, 20);

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/containers", get(list).post(create))
        .route("/v1/containers/{container}", get(retrieve).delete(remove))
        .route("/v1/containers/{container}/fork", post(fork::fork))
        .merge(file_routes::routes())
        .merge(checkpoint_routes::routes())
}

async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Json(create): Json<Create>,
) -> Result<Json<Value>, Problem> {
    create.check()?;
    let idle = create
        .expires_after
        .as_ref()
        .map(|after| idle(&gateway, after.minutes))
        .transpose()?;
    let mut attachments = Attachments::new(&gateway, &caller.owner, true);
    attachments
        .take(create.file_ids.as_deref().unwrap_or_default(), "file_ids")
        .await?;
    let asked = SkillRequest::parse_all(create.skills.as_deref().unwrap_or_default(), "skills")?;
    let skills = skills::requested(&gateway, &caller.owner, &asked, None, "skills").await?;
    let policy = create.network_policy.as_ref();
    let network = AllowedNetwork::parse(&gateway, &caller.owner, policy, "network_policy").await?;
    let new = ContainerPlan {
        idle,
        memory_limit: create.memory_limit,
        network,
        skills,
        ..ContainerPlan::named(create.name)
    };
    let held = new.make(&gateway, &caller.owner).await?;
    for file in attachments.into_files() {
        let id = Ids::random().mint("cfile");
        run::add(&gateway, &held, id, file.path, file.bytes, file.sha256, "user").await?;
    }
    let row = gateway.records.container(&caller.owner, &held.id).await?;
    let row = row.ok_or_else(|| unknown(&held.id))?;
    Ok(Json(object::container(&row, true)))
}

fn idle(gateway: &Gateway, minutes: u64) -> Result<Duration, ApiError> {
    let most = gateway.options.containers.max_idle_timeout.as_secs() / 60;
    if (1..=most).contains(&minutes) {
        return Ok(Duration::from_mins(minutes));
    }
    let message = format!("`expires_after.minutes` is {minutes}; it can be 1 to {most}");
    Err(ApiError::invalid(
        "expires_after.minutes",
        "invalid_value",
        message,
    ))
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    let page = listing::page(&query, PAGE.0, PAGE.1)?;
    let name = query.get("name").cloned();
    let found = gateway.records.containers(&caller.owner, name, page).await?;
    let now = now_ms();
    let told = listing::told(found, |row| {
        // Another gateway that used it within its time has it, as far as can be seen here.
        let other = row.holder.as_ref().is_some_and(|holder| *holder != gateway.id);
        let elsewhere = other && now < row.active_ms.saturating_add(row.idle_ms);
        object::container(row, elsewhere || gateway.containers.has(&caller.owner, &row.id))
    })?;
    Ok(Json(told))
}

async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = gateway.records.container(&caller.owner, &id).await?;
    let row = row.ok_or_else(|| unknown(&id))?;
    Ok(Json(object::container(
        &row,
        gateway.containers.has(&caller.owner, &id),
    )))
}

async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    if sweep::remove(&gateway, &caller.owner, &id).await? {
        Ok(Json(deleted(&id, "container.deleted")))
    } else {
        Err(unknown(&id).into())
    }
}
