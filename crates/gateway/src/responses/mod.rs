//! The Responses API.

mod create;

use axum::Router;
use axum::routing::post;

use crate::server::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/v1/responses", post(create::create))
}
