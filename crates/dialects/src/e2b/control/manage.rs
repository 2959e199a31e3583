//! One sandbox: its state, timeout, pause and end.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;
use super::answer::{Detail, SandboxAnswer};
use super::create::{TIMEOUT, lifetime};
use super::request::MEMORY;

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

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ConnectRequest {
    timeout: Option<u64>,
    memory: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ResumeRequest {
    timeout: Option<u64>,
    memory: Option<bool>,
    auto_pause: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct PauseRequest {
    memory: Option<bool>,
    require_healthy_guest: Option<bool>,
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
    let held = e2b.of(&owner, &id)?;
    if held.kept.life.borrow().is_paused {
        return Err(Problem::not_found(format!(
            "sandbox {id:?} is paused; connect to it first"
        )));
    }
    held.kept.live(timeout, false);
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
    e2b.of(&owner, &id)?.kept.live(timeout, true);
    Ok(StatusCode::NO_CONTENT)
}

/// Connects to a sandbox, which is resumed if it is paused. It lives at least as long as asked.
pub(super) async fn connect(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<SandboxAnswer>)> {
    let request: ConnectRequest = read(&body)?;
    with_memory(request.memory)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    let was_paused = held.kept.live(timeout, true);
    let status = if was_paused {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(SandboxAnswer::of(&e2b, &held))))
}

/// Resumes a paused sandbox, as old clients do.
pub(super) async fn resume(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<SandboxAnswer>)> {
    let request: ResumeRequest = read(&body)?;
    with_memory(request.memory)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    if !held.kept.life.borrow().is_paused {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already running"),
        ));
    }
    held.kept.live(timeout, false);
    if let Some(pauses) = request.auto_pause {
        held.kept.life.send_modify(|life| life.pauses = pauses);
    }
    Ok((StatusCode::CREATED, Json(SandboxAnswer::of(&e2b, &held))))
}

/// Pauses a sandbox: it stays in memory, cannot be used, and does not reach its timeout, until it
/// is connected.
pub(super) async fn pause(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: PauseRequest = read(&body)?;
    with_memory(request.memory)?;
    if request.require_healthy_guest == Some(true) {
        let why = "a pause does not ask the sandbox whether it is well; leave `strict` out, and call \
                   `is_running` first";
        return Err(Problem::unenforced("requireHealthyGuest", &true, why));
    }
    if !e2b.of(&owner, &id)?.kept.pause() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already paused"),
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Rejects a pause, or an end of one, that drops variables and processes.
fn with_memory(memory: Option<bool>) -> Answer<()> {
    match memory {
        Some(false) => Err(Problem::unenforced("memory", &false, MEMORY)),
        _ => Ok(()),
    }
}
