//! `GET /`: leads browsers to the console.

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

use crate::console;
use crate::state::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/", get(welcome))
}

/// Redirects browsers. Other clients get the same answer as for any path that has nothing.
async fn welcome(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    if !is_browser || !gateway.options.http.console {
        return StatusCode::NOT_FOUND.into_response();
    }
    ([(VARY, "accept")], Redirect::temporary(console::ROOT)).into_response()
}
