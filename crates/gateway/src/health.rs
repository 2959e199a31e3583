//! `GET /healthz` and `GET /readyz`: whether the process lives, and whether it should be asked for anything.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use crate::server::Gateway;

/// How long a template may take to say that it is warm; it knows at once.
const SOON: Duration = Duration::from_millis(100);

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
}

/// How the process is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Condition {
    /// `ok`, `starting` or `stopping`.
    status: &'static str,
}

/// Whether the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "It does", body = Condition))
)]
pub(crate) async fn healthz() -> Json<Condition> {
    Json(Condition { status: "ok" })
}

/// Whether requests are served without waiting for the image's libraries.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "They are", body = Condition),
        (status = 503, description = "It is starting or stopping", body = Condition),
    )
)]
pub(crate) async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, Json<Condition>) {
    let is = |status| Json(Condition { status });
    if gateway.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, is("stopping"));
    }
    match tokio::time::timeout(SOON, gateway.interpreter.warmed()).await {
        Ok(Ok(())) => (StatusCode::OK, is("ok")),
        Ok(Err(error)) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the template is not warm"
            );
            (StatusCode::SERVICE_UNAVAILABLE, is("starting"))
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, is("starting")),
    }
}
