//! Our own REST: sessions, their cells, inputs, files, datasets, processes and tools.
//!
//! A session is used by one request at a time; others wait for their turn, or are rejected if too
//! many wait. Requests for its processes or ports need no turn. A session of another owner is not
//! found.

pub(crate) mod aliases;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod cells;
pub(crate) mod checkpoints;
pub(crate) mod create;
pub(crate) mod datasets;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod inputs;
mod limits;
pub(crate) mod manage;
mod network;
pub(crate) mod ports;
pub(crate) mod processes;
pub(crate) mod run;
pub(crate) mod stream;
pub(crate) mod streams;
pub(crate) mod terminal;
pub(crate) mod tools;
pub(crate) mod tries;
pub(crate) mod usage;
pub(crate) mod variables;
mod volume;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post, put};

use crate::state::Gateway;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    let uploads = Router::new()
        .route("/v1/sessions/{id}/datasets", get(datasets::list).post(datasets::add))
        .route(
            "/v1/sessions/{id}/files/{*path}",
            get(files::get).put(files::put).delete(files::delete),
        )
        .route("/v1/sessions/{id}/inputs/{name}", put(inputs::put).post(inputs::put))
        // These count what they take themselves.
        .layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/v1/sessions", get(manage::list).post(create::create))
        .route("/v1/sessions/{id}", get(manage::get).delete(manage::delete))
        .route("/v1/sessions/{id}/aliases", get(aliases::list).post(aliases::add))
        .route("/v1/sessions/{id}/cells", get(cells::list).post(run::run))
        .route("/v1/sessions/{id}/cells/{cell}", get(cells::get))
        .route(
            "/v1/sessions/{id}/checkpoints",
            get(checkpoints::list).post(checkpoints::create),
        )
        .route(
            "/v1/sessions/{id}/checkpoints/{checkpoint}",
            delete(checkpoints::delete),
        )
        .route("/v1/sessions/{id}/events", get(events::list))
        .route("/v1/sessions/{id}/files", get(files::list))
        .route("/v1/sessions/{id}/fork", post(fork::fork))
        .route("/v1/sessions/{id}/hibernate", post(manage::hibernate))
        .route("/v1/sessions/{id}/interrupt", post(manage::interrupt))
        .route("/v1/sessions/{id}/ports", get(ports::list))
        .route("/v1/sessions/{id}/ports/{port}/links", post(ports::link))
        .route(
            "/v1/sessions/{id}/processes",
            get(processes::list).post(processes::start),
        )
        .route(
            "/v1/sessions/{id}/processes/{process}/input",
            post(processes::input),
        )
        .route(
            "/v1/sessions/{id}/processes/{process}/output",
            get(processes::output),
        )
        .route(
            "/v1/sessions/{id}/processes/{process}/signal",
            post(processes::signal),
        )
        .route(
            "/v1/sessions/{id}/processes/{process}/terminal",
            get(terminal::open),
        )
        .route(
            "/v1/sessions/{id}/processes/{process}/wait",
            post(processes::wait),
        )
        .route("/v1/sessions/{id}/reset", post(manage::reset))
        .route("/v1/sessions/{id}/rollback", post(checkpoints::roll_back))
        .route("/v1/sessions/{id}/streams/{stream}", get(streams::resume))
        .route("/v1/sessions/{id}/tools", get(tools::list))
        .route("/v1/sessions/{id}/tools/{name}", post(tools::call))
        .route("/v1/sessions/{id}/usage", get(usage::read))
        .route("/v1/sessions/{id}/try", post(tries::run))
        .route("/v1/sessions/{id}/try/discard", post(tries::discard))
        .route("/v1/sessions/{id}/try/keep", post(tries::keep))
        .route("/v1/sessions/{id}/variables", get(variables::list))
        .route("/v1/sessions/{id}/variables/{name}", get(variables::get))
        .route(
            "/v1/sessions/{id}/variables/{name}/origin",
            get(variables::origin),
        )
        .merge(uploads)
}
