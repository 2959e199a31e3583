//! Sessions as wholes: listed, looked at, stopped, reset and ended.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use cellblock_interpreter::session::hibernate::HibernationSummary;
use serde::Serialize;
use serde_json::Value;

use super::answer::{DeletionAnswer, SessionAnswer};
use super::run::attended;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::replicas::{self, MissingServer};
use crate::state::{Caller, Gateway};

/// Result of an interrupt.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InterruptAnswer {
    /// `session.interrupt`.
    object: &'static str,
    /// Whether code was running.
    interrupted: bool,
}

/// The caller's sessions.
#[derive(Debug, Serialize)]
pub(crate) struct SessionList {
    #[serde(flatten)]
    listed: ListAnswer<Value>,
    /// Servers that may have more, and did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_servers: Vec<MissingServer>,
}

/// Lists the caller's sessions, the oldest first, also those in other servers that share the
/// records. Servers that do not answer within 3 seconds are named in `missing_servers`.
#[utoipa::path(
    get, operation_id = "list_sessions", path = "/v1/sessions", tag = "sessions",
    responses(
        (status = 200, description = "The sessions", body = crate::openapi::SessionList),
        (status = 503, description = "The records of the servers cannot be read",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Json<SessionList>, Problem> {
    let held = gateway.sessions.0.of(&caller.owner);
    let own = held
        .iter()
        .map(|held| serde_json::to_value(SessionAnswer::of(held)));
    let own: Result<Vec<_>, _> = own.collect();
    let mut all = own.map_err(|error| Problem::internal("list sessions", &error))?;
    let (others, missing_servers) = replicas::of_others(&gateway, &headers, "/v1/sessions").await?;
    if !others.is_empty() {
        all.extend(others);
        all.sort_by_key(|session| session["created_at"].as_u64());
    }
    let listed = ListAnswer::new(all);
    Ok(Json(SessionList {
        listed,
        missing_servers,
    }))
}

/// A session.
#[utoipa::path(
    get, operation_id = "get_session", path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The session", body = crate::openapi::Session),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    Ok(Json(SessionAnswer::of(&held)))
}

/// Deletes a session and interrupts its code. The response is sent when its sandbox is gone.
#[utoipa::path(
    delete, operation_id = "delete_session", path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "It was deleted", body = crate::openapi::Deleted),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeletionAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    gateway.sessions.0.end(&held).await;
    Ok(Json(DeletionAnswer::new("session", id)))
}

/// Interrupts the code of a session. Variables are kept unless the code does not react.
#[utoipa::path(
    post, operation_id = "interrupt_session", path = "/v1/sessions/{id}/interrupt", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The interrupt was sent; the cell's own result says how it ended",
            body = crate::openapi::Interrupted),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn interrupt(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<InterruptAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let interrupted = held.holds() > 0;
    held.session.interrupt();
    let object = "session.interrupt";
    Ok(Json(InterruptAnswer { object, interrupted }))
}

/// Ends the kernel, the processes and the checkpoints of a session, and frees their memory. Files
/// are kept. The next cell starts a new kernel, and its result says that the variables are gone.
#[utoipa::path(
    post, operation_id = "hibernate_session", path = "/v1/sessions/{id}/hibernate", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "What the session has lost", body = crate::openapi::Hibernated),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn hibernate(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<HibernationSummary>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let session = held.session.clone();
    let hibernated = attended(&gateway, turn, async move { Ok(session.hibernate().await?) });
    Ok(Json(hibernated.await?))
}

/// Deletes all variables except the inputs, and ends all processes. Files are kept.
#[utoipa::path(
    post, operation_id = "reset_session", path = "/v1/sessions/{id}/reset", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The session", body = crate::openapi::Session),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn reset(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let session = held.session.clone();
    attended(&gateway, turn, async move { Ok(session.reset().await?) }).await?;
    Ok(Json(SessionAnswer::of(&held)))
}
