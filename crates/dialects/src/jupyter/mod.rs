//! Jupyter: the REST API of its server and its kernels' messages, for Open WebUI's code
//! interpreter, `jupyter_kernel_client` and others.
//!
//! ```text
//! POST /api/kernels ──> a session            WS /api/kernels/{id}/channels ──> queue ──> cells, one after the other
//!                                               every client <── what they write and show
//! ```

mod caller;
mod channels;
mod checkpoints;
mod contents;
mod execute;
mod kernel;
mod kernels;
mod options;
mod problem;
mod questions;
mod queue;
mod sessions;
mod state;
mod wire;

use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

pub(crate) use caller::named;
pub use options::JupyterOptions;

use self::caller::Caller;
use self::problem::Problem;
use self::state::Jupyter;
use crate::host::DialectHost;

/// Version of the server whose API this is.
const VERSION: &str = "2.21.0";

/// The dialect's routes.
pub(crate) fn routes(host: &DialectHost, options: &JupyterOptions) -> Router {
    Router::new()
        .route("/api", get(version))
        .route("/api/", get(version))
        .route("/api/status", get(status))
        .route("/login", get(caller::form).post(caller::login))
        .route("/api/kernelspecs", get(kernels::specs))
        .route("/api/kernelspecs/{name}", get(kernels::spec))
        .route("/api/kernels", get(kernels::list).post(kernels::start))
        .route("/api/kernels/{id}", get(kernels::get).delete(kernels::delete))
        .route("/api/kernels/{id}/interrupt", post(kernels::interrupt))
        .route("/api/kernels/{id}/restart", post(kernels::restart_route))
        .route("/api/kernels/{id}/channels", get(channels::open))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route(
            "/api/sessions/{id}",
            get(sessions::get)
                .patch(sessions::change)
                .delete(sessions::delete),
        )
        .route("/api/contents", get(contents::get))
        .route("/api/contents/", get(contents::get))
        .route(
            "/api/contents/{*path}",
            get(contents::get)
                .put(contents::put)
                .post(contents::post)
                .patch(contents::patch)
                .delete(contents::delete),
        )
        .fallback(async || Problem::missing("there is no such route in Cellblock's Jupyter API"))
        .layer(DefaultBodyLimit::max(host.max_body))
        .with_state(Jupyter::new(host, options))
}

/// `GET /api`, which needs no token.
async fn version() -> Json<Value> {
    Json(json!({"version": VERSION}))
}

/// `GET /api/status`.
async fn status(State(jupyter): State<Jupyter>, Caller(owner): Caller) -> Json<Value> {
    let kernels = jupyter.kernels.of(owner.name());
    let models: Vec<_> = kernels.iter().map(|it| it.kept.model(&it.id)).collect();
    let connections: u64 = models.iter().filter_map(|it| it["connections"].as_u64()).sum();
    let last = models.iter().filter_map(|it| it["last_activity"].as_str()).max();
    Json(json!({
        "started": jupyter.started(),
        "last_activity": last.map_or_else(|| jupyter.started().to_owned(), str::to_owned),
        "kernels": models.len(),
        "connections": connections,
    }))
}
