//! The OpenSandbox protocol: its SDKs, and LiteLLM's code interpreter.
//!
//! ```text
//! SDK ──lifecycle──> /sandboxes, /v1/sandboxes ── Sandbox, one per session
//!  └────execd──────> /execd/{id}/… ────────────── code, commands, files of one sandbox
//! ```
//!
//! A client learns the second address from `…/endpoints/44772`, with a token that opens one sandbox only.

mod access;
mod code;
mod command;
mod contexts;
mod create;
mod demands;
mod error;
mod events;
mod files;
mod lifecycle;
mod metrics;
mod options;
mod output;
mod runs;
mod sandbox;
mod shell;
mod terminal_socket;
mod terminals;
mod tree;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::routing::{any, delete, get, patch, post};
use cellblock_interpreter::hosting::HostingLimits;

pub use options::OpenSandboxOptions;

use crate::host::DialectHost;
use sandbox::State;

/// Port of the daemon that clients expect in each sandbox.
const EXECD_PORT: u16 = 44772;
/// Port of the program that clients ask about network policies.
const EGRESS_PORT: u16 = 18080;

/// Returns the id of the sandbox whose execd or port a request is for.
pub(crate) fn named(parts: &Parts) -> Option<String> {
    let mut path = parts.uri.path().split('/').skip(2);
    match path.next()? {
        "execd" | "ports" => path.next().map(str::to_owned),
        _ => None,
    }
}

/// Returns the routes of both parts.
pub(crate) fn routes(host: &DialectHost, options: &OpenSandboxOptions) -> Router {
    let state = State::new(host, options, host.sessions(HostingLimits::default()));
    let lifecycle = Router::new()
        .route("/sandboxes", get(lifecycle::list).post(create::create))
        .route("/sandboxes/{id}", get(lifecycle::get).delete(lifecycle::delete))
        .route("/sandboxes/{id}/renew-expiration", post(lifecycle::renew))
        .route("/sandboxes/{id}/pause", post(lifecycle::pause))
        .route("/sandboxes/{id}/resume", post(lifecycle::resume))
        .route("/sandboxes/{id}/metadata", patch(lifecycle::patch_metadata))
        .route("/sandboxes/{id}/snapshots", post(lifecycle::snapshot))
        .route("/sandboxes/{id}/endpoints/{port}", get(lifecycle::endpoint));
    let uploads = Router::new()
        .route("/files/upload", post(files::upload))
        .layer(DefaultBodyLimit::disable());
    let ports = Router::new()
        .route("/ports/{id}/{port}", any(lifecycle::port))
        .route("/ports/{id}/{port}/", any(lifecycle::port))
        .route("/ports/{id}/{port}/{*rest}", any(lifecycle::port))
        .layer(DefaultBodyLimit::disable());
    let execd = Router::new()
        .route("/ping", get(metrics::ping))
        .route("/metrics", get(metrics::metrics))
        .route("/code", post(code::run).delete(code::interrupt))
        .route("/code/context", post(contexts::create))
        .route("/code/contexts", get(contexts::list).delete(contexts::delete_all))
        .route(
            "/code/contexts/{context}",
            get(contexts::get).delete(contexts::delete),
        )
        .route("/command", post(command::run).delete(command::interrupt))
        .route("/command/status/{command}", get(command::status))
        .route("/command/{command}/logs", get(command::logs))
        .route("/session", post(shell::create))
        .route("/session/{shell}", delete(shell::delete))
        .route("/session/{shell}/run", post(shell::run))
        .route("/pty", post(terminals::create))
        .route(
            "/pty/{terminal}",
            get(terminals::status).delete(terminals::delete),
        )
        .route("/pty/{terminal}/ws", get(terminal_socket::attach))
        .route("/files", delete(tree::remove_files))
        .route("/files/info", get(tree::info))
        .route("/files/download", get(files::download))
        .route("/files/mv", post(tree::rename))
        .route("/files/permissions", post(tree::permissions))
        .route("/files/replace", post(tree::replace))
        .route("/files/search", get(tree::search))
        .route(
            "/directories",
            post(tree::make_directories).delete(tree::remove_directories),
        )
        .route("/directories/list", get(tree::list))
        .merge(uploads);
    Router::new()
        .merge(lifecycle.clone())
        .nest("/v1", lifecycle)
        .nest("/execd/{id}", execd)
        .fallback(async |uri: Uri| lifecycle::not_served(uri.path()))
        .layer(DefaultBodyLimit::max(host.max_body))
        .merge(ports)
        .with_state(state)
}
