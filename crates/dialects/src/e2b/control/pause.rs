//! Pauses of a sandbox, and their ends. A paused sandbox cannot be used and does not reach its timeout.
//!
//! ```text
//! memory: true   everything stays in memory ──connect──> it goes on
//! memory: false  only files stay            ──connect──> a new kernel, without variables and processes
//! ```

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::sandbox::{HeldSandbox, LifeState, drop_memory};
use super::super::state::E2b;
use super::answer::SandboxAnswer;
use super::create::{TIMEOUT, lifetime};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

/// Connects to a sandbox, which is resumed if it is paused. It lives at least as long as asked.
pub(super) async fn connect(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<SandboxAnswer>)> {
    let request: ConnectRequest = read(&body)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    reboot(&held, request.memory).await?;
    let was_paused = wake(&held, timeout, true).await?;
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
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    if !held.kept.life.borrow().is_paused() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already running"),
        ));
    }
    reboot(&held, request.memory).await?;
    wake(&held, timeout, false).await?;
    if let Some(pauses) = request.auto_pause {
        held.kept.life.send_modify(|life| life.pauses = pauses);
    }
    Ok((StatusCode::CREATED, Json(SandboxAnswer::of(&e2b, &held))))
}

/// Pauses a sandbox, until it is connected.
pub(super) async fn pause(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: PauseRequest = read(&body)?;
    if request.require_healthy_guest == Some(true) {
        let why = "a pause does not ask the sandbox whether it is well; leave `strict` out, and call \
                   `is_running` first";
        return Err(Problem::unenforced("requireHealthyGuest", &true, why));
    }
    let held = e2b.of(&owner, &id)?;
    let memory = request.memory.unwrap_or(true);
    if !held.kept.pause(memory) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already paused"),
        ));
    }
    if !memory && let Err(error) = drop_memory(&held).await {
        held.kept.life.send_modify(|life| life.state = LifeState::Running);
        return Err(error);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a sandbox live for this long, and resumes it if it is paused. Returns whether it was.
async fn wake(held: &HeldSandbox, timeout: Duration, at_least: bool) -> Answer<bool> {
    let state = held.kept.life.borrow().state;
    // A pause that still drops the memory would end what the client starts next.
    let _turn = match state {
        LifeState::PausedFiles => Some(held.turn().await?),
        LifeState::Running | LifeState::Paused => None,
    };
    Ok(held.kept.live(timeout, at_least))
}

/// Drops the variables and processes of a paused sandbox if a client wants it without them. One that runs
/// is not resumed, so that it keeps them.
async fn reboot(held: &HeldSandbox, memory: Option<bool>) -> Answer<()> {
    let state = held.kept.life.borrow().state;
    if memory == Some(false) && state == LifeState::Paused {
        drop_memory(held).await?;
    }
    Ok(())
}
