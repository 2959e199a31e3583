//! `GET /healthz` and `GET /readyz`: whether the process lives, and whether it should be asked for anything.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use crate::engine::Engine;
use crate::state::Gateway;

/// Maximum time for an answer of something that readiness depends on.
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
    /// `ok`, `not_ready` or `draining`.
    status: &'static str,
    /// Reason that it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
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
        (status = 503, description = "The server is starting or stopping, or its disk is full",
            body = Condition),
    )
)]
pub(crate) async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, Json<Condition>) {
    if gateway.draining.is_cancelled() {
        return not_now("draining", "the gateway is stopping");
    }
    match lacking(&gateway).await {
        None => (StatusCode::OK, Json(Condition::new("ok", None))),
        Some(reason) => not_now("not_ready", reason),
    }
}

/// The answer of a server that is not ready.
pub(crate) fn not_now(status: &'static str, reason: impl Into<String>) -> (StatusCode, Json<Condition>) {
    let condition = Condition::new(status, Some(reason.into()));
    (StatusCode::SERVICE_UNAVAILABLE, Json(condition))
}

impl Condition {
    const fn new(status: &'static str, reason: Option<String>) -> Self {
        Self { status, reason }
    }
}

/// Returns the reason that requests should go elsewhere.
async fn lacking(gateway: &Gateway) -> Option<&'static str> {
    let asked = gateway.records.with(|database| database.exists("SELECT 1", &[]));
    if !matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok(_))) {
        return Some("the records cannot be read");
    }
    if gateway.responses.cannot_be_stored() {
        return Some("responses cannot be stored: the disk of the records may be full");
    }
    if tokio::time::timeout(PATIENCE, gateway.disks.is_full())
        .await
        .unwrap_or(false)
    {
        return Some("the disk of the data folder is full: free space there");
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
