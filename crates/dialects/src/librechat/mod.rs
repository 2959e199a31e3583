//! The Code API of LibreChat: `LIBRECHAT_CODE_BASEURL` names it.
//!
//! ```text
//! LibreChat ──/upload──> Storage ──files──┐
//!     │                     ^             v
//!     └──/exec──> Turn ─────┴─ outputs ── sandbox of the conversation, or of this run
//! ```
//!
//! Files stay in storage sessions, whose keys say who reads them. Code runs in a sandbox for one
//! run; with a `runtime_session_hint` in one for the conversation, whose files stay. Variables do
//! not.

mod access;
mod conversation;
mod error;
mod exec;
mod files;
mod jwk;
mod jwt;
mod names;
mod options;
mod outputs;
mod programmatic;
mod rounds;
mod run;
mod state;
mod storage;
mod upload;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post};

pub use options::{JwtKey, JwtOptions, LibreChatOptions};

use crate::host::DialectHost;
use error::Problem;
use state::State;

/// Returns the routes.
pub(crate) fn routes(host: &DialectHost, options: &LibreChatOptions) -> Router {
    let uploads = Router::new()
        .route("/upload", post(upload::one))
        .route("/upload/batch", post(upload::batch))
        .layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/health", get(async || "OK"))
        .route("/exec", post(exec::exec))
        .route("/exec/programmatic", post(programmatic::step))
        .route("/exec/programmatic/cancel", post(programmatic::cancel))
        .route("/files/{session}", get(files::list))
        .route("/files/{session}/{file}", delete(files::delete))
        .route("/download/{session}/{file}", get(files::download))
        .route(
            "/sessions/{session}/objects/{file}",
            get(files::metadata).delete(files::delete),
        )
        .merge(uploads)
        .fallback(async || Problem::missing("this server has no such route of the Code API"))
        .layer(DefaultBodyLimit::max(host.max_body))
        .with_state(State::new(host, options))
}
