//! `/ports` and `/proxy/{port}/{path}`: programs of a sandbox that listen on a port.
//!
//! Their pages are written by code that nobody trusts, and come from the address of Open WebUI. The
//! answer makes browsers show them in an origin of their own, so that they can do nothing that any
//! other page could not do.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use cellblock_interpreter::egress::inbound::{PageOrigin, ProgramPort};
use serde_json::{Value, json};

use super::chat::{Caller, OpenTerminal};
use super::problem::Problem;
use crate::forward::{ForwardFailure, to_program};

/// Headers of requests that are not for programs.
const PRIVATE: &[&str] = &[
    "authorization",
    "x-user-id",
    "x-session-id",
    "x-terminal-context-id",
];

/// `GET /ports`.
pub(super) async fn list(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let ports = match terminal.existing(&caller) {
        Some(held) => held.session.ports().list().await?,
        None => Vec::new(),
    };
    // Which process it is, the sandbox does not say.
    let port = |port| json!({"port": port, "address": "127.0.0.1", "pid": null, "process": null});
    Ok(Json(
        json!({"ports": ports.into_iter().map(port).collect::<Vec<_>>()}),
    ))
}

/// `/proxy/{port}/{path}`.
pub(super) async fn proxy(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path((port, _)): Path<(u16, String)>,
    request: Request,
) -> Result<Response, Problem> {
    forward(&terminal, &caller, port, request).await
}

/// `/proxy/{port}/`.
pub(super) async fn proxy_root(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(port): Path<u16>,
    request: Request,
) -> Result<Response, Problem> {
    forward(&terminal, &caller, port, request).await
}

async fn forward(
    terminal: &OpenTerminal,
    caller: &Caller,
    port: u16,
    request: Request,
) -> Result<Response, Problem> {
    let closed = || Problem::missing(format!("nothing listens on port {port} of this sandbox"));
    let held = terminal.existing(caller).ok_or_else(closed)?;
    let program = ProgramPort {
        port,
        // Only Open WebUI knows where the program's root is for the browser.
        origin: PageOrigin::Server {
            root: None,
            is_readable: false,
        },
        private: PRIVATE,
    };
    let prefix = format!("/proxy/{port}");
    let answer = to_program(&terminal.host, held, &program, &prefix, request).await;
    answer.map_err(|reason| match reason {
        ForwardFailure::Path(path) => Problem::invalid(format!("`{path}` is not a path")),
        ForwardFailure::Closed(error) => error.into(),
        ForwardFailure::Broken(error) => {
            let detail = format!("the program on port {port} broke off: {error}");
            Problem::new(StatusCode::BAD_GATEWAY, detail)
        }
    })
}
