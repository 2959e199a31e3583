//! The code interpreter: cells in contexts, and their results as lines of JSON.

mod contexts;
mod environment;
mod execute;
mod line;
mod result;

use axum::Router;
use axum::routing::{delete, post};

pub(super) use contexts::Contexts;
pub(super) use environment::set as set_variables;

use super::state::E2b;

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/execute", post(execute::execute))
        .route("/contexts", post(contexts::create).get(contexts::list))
        .route("/contexts/{id}", delete(contexts::remove))
        .route("/contexts/{id}/restart", post(contexts::restart))
}
