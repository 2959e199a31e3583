//! One sandbox: its state, timeout and end.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use serde::Deserialize;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::answer::Detail;
use super::create::lifetime;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TimeoutRequest {
    timeout: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RefreshRequest {
    duration: Option<u64>,
}

pub(super) async fn get(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Answer<Json<Detail>> {
    let held = e2b.of(&owner, &id)?;
    Ok(Json(Detail::of(&e2b, &held, true)))
}

pub(super) async fn kill(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Answer<StatusCode> {
    let held = e2b.of(&owner, &id)?;
    e2b.sandboxes.close(&held).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets how long it lives from now.
pub(super) async fn timeout(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: TimeoutRequest = read(&body)?;
    let seconds = request
        .timeout
        .ok_or_else(|| Problem::invalid("`timeout` is missing; give a number of seconds"))?;
    let timeout = lifetime(&e2b, seconds)?;
    running(&e2b, &owner, &id)?.kept.live(timeout, false);
    Ok(StatusCode::NO_CONTENT)
}

/// Lets it live at least so long from now.
pub(super) async fn refresh(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: RefreshRequest = read(&body)?;
    let timeout = lifetime(&e2b, request.duration.unwrap_or(60))?;
    running(&e2b, &owner, &id)?.kept.live(timeout, true);
    Ok(StatusCode::NO_CONTENT)
}

/// Holds an owner's sandbox unless it is paused.
pub(super) fn running(e2b: &E2b, owner: &Owner, id: &str) -> Answer<HeldSandbox> {
    let held = e2b.of(owner, id)?;
    let is_paused = held.kept.life.borrow().is_paused();
    if is_paused {
        return Err(Problem::not_found(format!(
            "sandbox {id:?} is paused; connect to it first"
        )));
    }
    Ok(held)
}
