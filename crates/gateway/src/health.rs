//! `GET /healthz` and `GET /readyz`: whether the process lives, and whether it should be asked for anything.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use crate::engine::Engine;
use crate::state::Gateway;

/// How long what readiness depends on may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
}

/// State of the process.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Condition {
    /// `ok` or `not_ready`.
    status: &'static str,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Reports whether the process is running.
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "It is running", body = Condition))
)]
pub(crate) async fn healthz() -> Json<Condition> {
    Json(Condition::new("ok", None))
}

/// Reports whether requests are served without waiting for the image's libraries.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "The server is ready", body = Condition),
        (status = 503, description = "The server is starting or stopping", body = Condition),
    )
)]
pub(crate) async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, Json<Condition>) {
    match lacking(&gateway).await {
        None => (StatusCode::OK, Json(Condition::new("ok", None))),
        reason => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(Condition::new("not_ready", reason)),
        ),
    }
}

impl Condition {
    const fn new(status: &'static str, reason: Option<&'static str>) -> Self {
        Self { status, reason }
    }
}

/// Why requests had better go elsewhere.
async fn lacking(gateway: &Gateway) -> Option<&'static str> {
    if gateway.stopping.is_cancelled() {
        return Some("the gateway is stopping");
    }
    let asked = gateway.records.with(|database| database.exists("SELECT 1", &[]));
    if !matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok(_))) {
        return Some("the records cannot be read");
    }
    if gateway.responses.cannot_be_stored() {
        return Some("responses cannot be stored: the disk of the records may be full");
    }
    let interpreter = match &gateway.engine {
        Engine::Interpreter(interpreter) => interpreter,
        Engine::Execute(elsewhere) => {
            let asked = tokio::time::timeout(PATIENCE, elsewhere.server.health()).await;
            return (!matches!(asked, Ok(Ok(_)))).then_some("the server that runs code does not answer");
        }
    };
    match tokio::time::timeout(PATIENCE, interpreter.warmed()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "no kernel can be started"
            );
            Some("no kernel can be started")
        }
        Err(_) => Some("the image's libraries are being imported"),
    }
}
