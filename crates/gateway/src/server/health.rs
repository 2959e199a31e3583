//! `GET /healthz`, `GET /readyz` and `GET /metrics`.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::json;

use super::{Gateway, METRICS};

/// How long what readiness depends on may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The routes.
pub(super) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/healthz", get(async || axum::Json(json!({"status": "ok"}))))
        .route("/readyz", get(ready))
        .merge(metrics())
}

/// The route of the metrics alone.
pub(super) fn metrics() -> Router<Gateway> {
    Router::new().route(METRICS, get(measure))
}

async fn ready(State(gateway): State<Gateway>) -> Response {
    match lacking(&gateway).await {
        None => axum::Json(json!({"status": "ready"})).into_response(),
        Some(why) => {
            let body = json!({"status": "not_ready", "reason": why});
            (StatusCode::SERVICE_UNAVAILABLE, axum::Json(body)).into_response()
        }
    }
}

/// Why requests had better go elsewhere.
async fn lacking(gateway: &Gateway) -> Option<&'static str> {
    if gateway.stopping.is_cancelled() {
        return Some("the gateway is stopping");
    }
    let asked = gateway
        .records
        .with(|connection| connection.query_row("SELECT 1", [], |_| Ok(())));
    if !matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok(()))) {
        return Some("the records cannot be read");
    }
    match tokio::time::timeout(PATIENCE, gateway.interpreter.warmed()).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some("no kernel can be started"),
        Err(_) => Some("the image's libraries are being imported"),
    }
}

async fn measure(State(gateway): State<Gateway>) -> Response {
    let Some(text) = crate::metrics::render(&gateway.interpreter) else {
        let why = "the program around the gateway counts by other means";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
