//! `GET /openapi.json`: the routes, made from their handlers.
//!
//! Handlers carry `#[utoipa::path]` and are listed in `Routes` once. Reports of the interpreter are
//! described by the schemas that it has for every interface; a type of `crate::openapi` represents
//! each in a handler's annotation. The module `openai` describes the routes under OpenAI's names in
//! short.

mod openai;
mod schemas;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::state::Gateway;
use crate::{
    artifacts, connectors, decision_routes, execute, health, key_routes, own_key, projects, runs,
    server_routes, sessions, volumes,
};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/openapi.json", get(openapi))
}

/// Every handler that has a route. A new one is one more line here.
#[derive(Debug, OpenApi)]
#[openapi(
    paths(
        openapi,
        health::healthz,
        health::readyz,
        own_key::read,
        decision_routes::list,
        server_routes::read,
        server_routes::backends,
        key_routes::list,
        key_routes::create,
        key_routes::revoke,
        execute::execute,
        execute::health,
        artifacts::serve,
        artifacts::rows,
        connectors::list,
        connectors::call,
        projects::list,
        projects::read,
        projects::remove,
        projects::versions,
        projects::content,
        volumes::list,
        volumes::read,
        volumes::remove,
        runs::list,
        runs::read,
        runs::again,
        runs::export,
        sessions::create::create,
        sessions::manage::list,
        sessions::manage::get,
        sessions::manage::delete,
        sessions::manage::interrupt,
        sessions::manage::reset,
        sessions::usage::read,
        sessions::variables::list,
        sessions::variables::get,
        sessions::variables::origin,
        sessions::run::run,
        sessions::streams::resume,
        sessions::cells::list,
        sessions::cells::get,
        sessions::inputs::put,
        sessions::files::list,
        sessions::files::get,
        sessions::files::put,
        sessions::files::delete,
        sessions::processes::start,
        sessions::processes::list,
        sessions::processes::output,
        sessions::processes::input,
        sessions::processes::signal,
        sessions::processes::wait,
        sessions::terminal::open,
        sessions::checkpoints::create,
        sessions::checkpoints::list,
        sessions::checkpoints::delete,
        sessions::checkpoints::roll_back,
        sessions::tries::run,
        sessions::tries::keep,
        sessions::tries::discard,
        sessions::fork::fork,
        sessions::manage::hibernate,
        sessions::events::list,
        sessions::ports::list,
        sessions::ports::link,
        sessions::datasets::add,
        sessions::datasets::list,
        sessions::tools::list,
        sessions::tools::call,
        sessions::aliases::add,
        sessions::aliases::list,
    ),
    tags(
        (name = "sessions", description = "Cells that share variables and files, and tools that use them"),
        (name = "volumes", description = "Folders of files that outlive the sessions that write them"),
        (name = "runs", description = "Records of what was run, and replays of it"),
        (name = "projects", description = "Datasets that sessions of a project share"),
        (name = "connectors", description = "Functions of the host that code of the caller's key can call"),
        (name = "artifacts", description = "Artifacts that code created, by their sha256"),
        (name = "sandbox server", description = "One program in a fresh sandbox"),
        (name = "operations", description = "For operators of the gateway"),
    ),
)]
struct Routes;

/// Returns this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(crate) async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], Json(document()))
}

/// The addresses below `/v1` that all others begin with.
pub(crate) fn roots() -> Vec<String> {
    let document = document();
    let paths = document["paths"].as_object();
    let mut paths: Vec<_> = paths
        .into_iter()
        .flat_map(|paths| paths.keys())
        .filter(|path| path.starts_with("/v1/"))
        .filter_map(|path| path.split("/{").next())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| {
        let begins = |root: &String| {
            path.strip_prefix(root.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        };
        !all.iter().any(begins)
    });
    paths
}

/// The description of the API.
pub fn document() -> Value {
    let made = serde_json::to_value(Routes::openapi());
    let mut document = made.unwrap_or_else(|error| json!({"error": error.to_string()}));
    document["info"] = json!({
        "title": "Cellblock",
        "description": "A self-hosted code interpreter. Errors are \
                        `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}`.",
        "version": env!("CARGO_PKG_VERSION"),
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    openai::add(&mut document["paths"]);
    schemas::fill(&mut document);
    document.sort_all_objects();
    document
}
