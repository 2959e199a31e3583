//! E2B's API, so that its SDKs work unchanged: the control API, the daemon in a sandbox (`envd`),
//! and the code interpreter.
//!
//! ```text
//! POST /sandboxes, …/fork, …/snapshots ──> a session, and what E2B knows of it          (control)
//! POST /v3/templates, /v2/templates/{id}/builds/{id} ──> files that sessions begin with          (templates)
//! POST /execute, /contexts ──> cells                               (code)
//! GET, POST /files, POST /filesystem.Filesystem/…, /process.Process/… ──> files and processes   (envd)
//! anything else, with the number of another port ──> a program in the sandbox                   (ports)
//! ```
//!
//! E2B gives each sandbox hosts of its own. Here a request names its sandbox and port by headers,
//! which E2B's clients send anyway, or by such a host, if it comes to an address of [`listeners`].

mod body;
mod code;
mod control;
mod domain;
mod envd;
mod error;
mod listeners;
mod options;
mod paths;
mod place;
mod ports;
mod sandbox;
mod secret;
mod snapshot;
mod state;
mod templates;
mod volumes;

use axum::Router;
use axum::extract::DefaultBodyLimit;

use crate::host::DialectHost;
use crate::{DialectListenError, DialectListener};

pub use options::{BuildOptions, DomainTls, E2bOptions};
pub(crate) use place::marked as named;

use state::E2b;

/// Returns the routes, and listens at the dialect's own addresses.
pub(crate) fn routes(
    host: &DialectHost,
    options: &E2bOptions,
    listeners: &mut Vec<DialectListener>,
) -> Result<Router, DialectListenError> {
    let e2b = E2b::new(host.clone(), options.clone())?;
    let routes = router(&e2b);
    listeners.extend(listeners::listen(&e2b, &routes)?);
    Ok(routes)
}

fn router(e2b: &E2b) -> Router {
    Router::new()
        .merge(control::routes())
        .merge(code::routes())
        .merge(envd::routes())
        .merge(templates::routes())
        .merge(volumes::routes())
        .layer(DefaultBodyLimit::max(e2b.host.max_body))
        // Bodies of files are limited where they are read.
        .merge(envd::file_routes())
        .merge(templates::upload_routes())
        .fallback(ports::forward)
        .with_state(e2b.clone())
}
