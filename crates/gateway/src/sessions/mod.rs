//! Our own REST: sessions, their cells, files and datasets.

use axum::Router;

use crate::server::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
}
