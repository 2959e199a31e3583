//! Open Terminal, the protocol by which Open WebUI gives models a computer: a sandbox for each chat.
//!
//! ```text
//! Open WebUI ── openapi.json ──> a tool for each operation
//!            ── X-User-Id, X-Session-Id ──> the chat's sandbox: commands, files, and Python whose variables stay
//! ```
//!
//! Operations that models are offered are in `document.rs`; the other routes are for Open WebUI's
//! user interface.

mod arguments;
mod chat;
mod commands;
mod document;
mod files;
mod keys;
mod notebooks;
mod options;
mod ports;
mod problem;
mod python;
mod skills;
mod terminal_socket;
mod terminals;
mod transfer;
mod workspace;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, delete, get, post};

pub use options::OpenTerminalOptions;
pub(crate) use terminals::named;

use self::chat::OpenTerminal;
use self::problem::Problem;
use crate::host::DialectHost;

/// The dialect's routes.
pub(crate) fn routes(host: &DialectHost, options: &OpenTerminalOptions) -> Router {
    let uploads = Router::new()
        .route("/files/upload", post(transfer::upload))
        .route("/proxy/{port}", any(ports::proxy_root))
        .route("/proxy/{port}/", any(ports::proxy_root))
        .route("/proxy/{port}/{*path}", any(ports::proxy))
        .layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/openapi.json", get(document::openapi))
        .route("/health", get(document::health))
        .route("/api/config", get(document::config))
        .route("/system", get(document::system))
        .route("/skills", get(skills::list))
        .route("/skills/read", get(skills::read))
        .route("/python", post(python::run))
        .route("/execute", post(commands::run).get(commands::list))
        .route("/execute/{process_id}", delete(commands::kill))
        .route("/execute/{process_id}/status", get(commands::status))
        .route("/execute/{process_id}/input", post(commands::input))
        .route("/files/cwd", get(files::cwd).post(files::set_cwd))
        .route("/files/list", get(files::list))
        .route("/files/read", get(files::read))
        .route("/files/display", get(files::display))
        .route("/files/write", post(files::write))
        .route("/files/replace", post(files::replace))
        .route("/files/grep", get(files::grep))
        .route("/files/glob", get(files::glob))
        .route("/files/search", get(files::search))
        .route("/files/view", get(transfer::view))
        .route("/files/serve/{*path}", get(transfer::serve))
        .route("/files/mkdir", post(transfer::mkdir))
        .route("/files/move", post(transfer::rename))
        .route("/files/delete", delete(transfer::delete))
        .route("/files/archive", post(transfer::archive))
        .route("/files/compare", post(transfer::compare))
        .route("/ports", get(ports::list))
        .route("/notebooks", post(notebooks::open))
        .route("/notebooks/{id}", get(notebooks::get).delete(notebooks::close))
        .route("/notebooks/{id}/execute", post(notebooks::execute))
        .route("/api/terminals", post(terminals::create).get(terminals::list))
        .route(
            "/api/terminals/{id}",
            get(terminals::open).delete(terminals::delete),
        )
        .route("/api/terminals/user/output", get(terminals::read))
        .route("/api/terminals/user/input", post(terminals::write))
        .fallback(async || Problem::missing("there is no such route; /openapi.json lists the operations"))
        .layer(DefaultBodyLimit::max(host.max_body))
        .merge(uploads)
        .with_state(OpenTerminal::new(host, options))
}
