//! Pages of programs in sandboxes: HTTP and WebSockets to a port of a session.
//!
//! ```text
//! client ── key, or signed link ──> gateway ── PortStream ──> program in the sandbox
//! ```
//!
//! What comes back is written by code that nobody trusts, and comes from the gateway's address. The
//! answer makes browsers show it in an origin of its own (`egress::inbound`), so that it can do
//! nothing that any other page could not do. With a domain for it, each port has a host of its own
//! instead (`host.rs`).

mod forward;
pub(crate) mod host;
mod link;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Path, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;

pub(crate) use link::PreviewLink;

use crate::problem::Problem;
use crate::replicas;
use crate::state::{Caller, Gateway};
use forward::{PreviewAccess, PreviewRoute, forward};

/// Path below which links are served.
pub(crate) const LINKS: &str = "/v1/previews/";

/// The routes for callers with a key.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/sessions/{id}/proxy/{port}", any(by_key))
        .route("/v1/sessions/{id}/proxy/{port}/", any(by_key))
        .route("/v1/sessions/{id}/proxy/{port}/{*path}", any(by_key))
        .layer(DefaultBodyLimit::disable())
}

/// The routes of links, which are all the authority that a request needs.
pub(crate) fn link_routes(gateway: &Gateway) -> Router<Gateway> {
    Router::new()
        .route("/v1/previews/{link}", any(by_link))
        .route("/v1/previews/{link}/", any(by_link))
        .route("/v1/previews/{link}/{*path}", any(by_link))
        .layer(from_fn_with_state(gateway.clone(), open_link))
        .layer(DefaultBodyLimit::disable())
}

async fn by_key(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(place): Path<PortPath>,
    request: Request,
) -> Result<Response, Problem> {
    let PortPath { id, port } = place;
    let prefix = format!("/v1/sessions/{id}/proxy/{port}");
    let way = PreviewRoute {
        prefix,
        port,
        entry: PreviewAccess::Key,
    };
    let held = gateway.sessions.find(&caller, &id)?;
    forward(&gateway, &held, &way, request).await
}

/// Before routes of links: opens the link, and lets the gateway answer that has the session.
async fn open_link(
    State(gateway): State<Gateway>,
    Path(linked): Path<LinkPath>,
    mut request: Request,
    next: Next,
) -> Response {
    match PreviewLink::open(&gateway, &linked.link).await {
        Ok(link) => {
            request.extensions_mut().insert(link.clone());
            replicas::at_session(&gateway, &link.owner, &link.session, request, next).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn by_link(
    State(gateway): State<Gateway>,
    Path(linked): Path<LinkPath>,
    Extension(link): Extension<PreviewLink>,
    request: Request,
) -> Result<Response, Problem> {
    let PreviewLink {
        owner,
        session,
        port,
        own_host,
        ..
    } = link;
    let way = PreviewRoute {
        prefix: format!("{LINKS}{}", linked.link),
        port,
        entry: if own_host {
            PreviewAccess::Host
        } else {
            PreviewAccess::Link
        },
    };
    let held = gateway.sessions.find(&Caller { owner }, &session)?;
    forward(&gateway, &held, &way, request).await
}

/// The session and port in a path.
#[derive(Debug, serde::Deserialize)]
struct PortPath {
    id: String,
    port: u16,
}

/// The link in a path.
#[derive(Debug, serde::Deserialize)]
struct LinkPath {
    link: String,
}
