//! The sandbox server of one call: `POST /execute` and `GET /health`.

use axum::Router;

use crate::server::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
}
