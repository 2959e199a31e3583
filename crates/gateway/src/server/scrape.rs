//! `GET /metrics`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::METRICS;
use crate::state::Gateway;

/// The route.
pub(super) fn routes() -> Router<Gateway> {
    Router::new().route(METRICS, get(measure))
}

async fn measure(State(gateway): State<Gateway>) -> Response {
    let Some(text) = crate::metrics::render(gateway.interpreter().ok().map(AsRef::as_ref)) else {
        let why = "the program around the gateway counts by other means\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
