//! One sandbox: its state, timeout, pause and end.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::envd;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;
use super::answer::{Connected, Detail};
use super::create::{TIMEOUT, lifetime};

/// Sandboxes of which one request asks for metrics.
const MANY: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TimeoutRequest {
    timeout: Option<u64>,
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
    let request = read(&body)?;
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
    let request = read(&body)?;
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
) -> Answer<(StatusCode, Json<Connected>)> {
    let timeout = lifetime(&e2b, read(&body)?.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    let was_paused = held.kept.live(timeout, true);
    let status = if was_paused {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(Connected::of(&e2b, &held))))
}

/// Resumes a paused sandbox, as old clients do.
pub(super) async fn resume(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<Connected>)> {
    let timeout = lifetime(&e2b, read(&body)?.timeout.unwrap_or(TIMEOUT))?;
    let held = e2b.of(&owner, &id)?;
    if !held.kept.life.borrow().is_paused {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already running"),
        ));
    }
    held.kept.live(timeout, false);
    Ok((StatusCode::CREATED, Json(Connected::of(&e2b, &held))))
}

/// Pauses a sandbox: it stays in memory, cannot be used, and does not reach its timeout, until it is connected.
pub(super) async fn pause(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: Map<String, Value> = if body.is_empty() {
        Map::new()
    } else {
        serde_json::from_slice(&body).map_err(|error| Problem::invalid(format!("invalid body: {error}")))?
    };
    if request.get("memory") == Some(&Value::Bool(false)) {
        return Err(Problem::not_served(
            "pauses without memory (`memory: false`)",
            "pause with memory, or write files elsewhere and kill the sandbox",
        ));
    }
    if !e2b.of(&owner, &id)?.kept.pause() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("sandbox {id:?} is already paused"),
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn metrics(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Answer<Json<Value>> {
    let held = e2b.of(&owner, &id)?;
    Ok(Json(json!([envd::metrics(&e2b, &held).await?.control()])))
}

pub(super) async fn metrics_of_many(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<Json<Value>> {
    let query = query.unwrap_or_default().replace("%2C", ",");
    let ids = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("sandbox_ids="));
    let mut found = Map::new();
    for id in ids.flat_map(|ids| ids.split(',')).take(MANY) {
        if let Ok(held) = e2b.of(&owner, id) {
            found.insert(id.to_owned(), envd::metrics(&e2b, &held).await?.control());
        }
    }
    Ok(Json(json!({ "sandboxes": found })))
}

fn read(body: &Bytes) -> Answer<TimeoutRequest> {
    if body.is_empty() {
        return Ok(TimeoutRequest::default());
    }
    serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("invalid body: {error}")))
}
