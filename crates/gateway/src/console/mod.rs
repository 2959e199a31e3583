//! `/console`: the pages in which people look at sessions and try cells, in a browser.
//!
//! ```text
//! browser ── GET /console ──────────── the page and its assets, from this binary
//!         ── POST /console/sign-in ─── a key becomes a cookie
//!         ── /v1/… ─────────────────── the API, as any other client; the cookie stands for the key
//! ```
//!
//! The pages are built from `console/` and embedded. They run scripts of this server only, whatever
//! code in a sandbox has written: the policy in `assets.rs` forbids everything else. A cookie alone
//! opens nothing, because pages of other sites make browsers send it, too: a request that uses it
//! carries a header that only the console's own pages can set (`cookie.rs`).

mod assets;
mod cookie;
mod sign_in;
mod state;
mod ticket;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{any, get, post};

use crate::body_limit;
use crate::problem::Problem;
use crate::state::Gateway;

/// Path of the console.
pub(crate) const ROOT: &str = "/console";
/// Maximum size of a request body: a key.
const MAX_BODY: usize = 4096;

/// The routes. They read keys and cookies themselves. Without a console they say what would switch it on.
pub(crate) fn routes(on: bool) -> Router<Gateway> {
    if !on {
        return Router::new()
            .route(ROOT, any(off))
            .route("/console/{*path}", any(off));
    }
    Router::new()
        .route(ROOT, get(assets::page))
        .route("/console/", get(assets::page))
        .route("/console/assets/{name}", get(assets::asset))
        .route("/console/state", get(state::state))
        .route("/console/sign-in", post(sign_in::sign_in))
        .route("/console/sign-out", post(sign_in::sign_out))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(name_limit))
}

/// Names the limit of these routes, which `http.max_body` does not change.
async fn name_limit(request: Request, next: Next) -> Response {
    let message = || format!("the request body has more than {MAX_BODY} bytes, the limit; send only the key");
    body_limit::name(next.run(request).await, message).await
}

async fn off() -> Problem {
    let message = "the console is switched off on this server; `http.console: true` in its configuration \
                   switches it on";
    Problem::missing("console_off", message)
}

/// Returns the id of the key that a request's cookie stands for.
pub(crate) async fn signed_in(
    gateway: &Gateway,
    headers: &axum::http::HeaderMap,
) -> Result<Option<String>, Problem> {
    if !gateway.options.http.console {
        // Cookies of an earlier start open nothing either.
        return Ok(None);
    }
    let ticket = cookie::ticket(gateway, headers).await?;
    Ok(ticket.map(|ticket| ticket.owner))
}
