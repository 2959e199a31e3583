//! The HTTP server: it composes the routes and the middleware before them, starts and stops. No
//! route knows it.
//!
//! ```text
//! connection ── hosts of previews ── observe ── answers ── panics ── hosts ── CORS ── auth ── body limit ── replicas ── route
//! ```

mod accept;
mod answers;
mod anthropic;
mod auth;
mod guarded;
mod hosts;
mod linger;
mod mount;
mod observe;
mod scrape;
mod start;
mod stop;
mod throttle;
mod tls;
mod waiting;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use tower_http::catch_panic::CatchPanicLayer;

pub use auth::AuthRejection;
pub use mount::{Form, Mount};
pub use observe::RequestId;
pub use start::{ServeError, check};
pub use stop::GatewayServer;
pub use tls::TlsError;
pub use waiting::{StartReason, answer_meanwhile};

use crate::options::HttpServerOptions;
use crate::state::Gateway;
use crate::{
    artifacts, connectors, console, containers, conversations, decision_routes, description, execute, files,
    health, key_routes, model_routes, own_key, preview, projects, remote, replicas, responses, runs,
    server_routes, sessions, skills, volumes, welcome,
};

/// Path of the metrics.
const METRICS: &str = "/metrics";

impl Gateway {
    /// Returns the routes with their middleware. A layer around them names the caller by a
    /// [`Caller`](crate::Caller) in the request's extensions.
    pub fn router(&self) -> Router {
        self.router_with(&[])
    }

    /// The same, and services of others beside them.
    pub fn router_with(&self, mounts: &[Mount]) -> Router {
        let body_timeout = self.options.http.body_timeout;
        let mounted = |own_keys| {
            let mounts = mounts
                .iter()
                .filter(move |mount| mount.has_own_keys() == own_keys);
            mounts.fold(Router::new(), |router, mount| router.merge(mount.route(self)))
        };
        let state = || self.clone();
        let served = Router::new()
            .merge(responses::routes().layer(from_fn_with_state(state(), replicas::responses)))
            .merge(conversations::routes())
            .merge(model_routes::routes())
            .merge(containers::routes().layer(from_fn_with_state(state(), replicas::containers)))
            .merge(files::routes())
            .merge(
                sessions::routes()
                    .merge(preview::routes())
                    .layer(from_fn_with_state(state(), replicas::sessions)),
            )
            .merge(skills::routes())
            .merge(volumes::routes())
            .merge(runs::routes())
            .merge(artifacts::routes())
            .merge(projects::routes())
            .merge(own_key::routes())
            .merge(key_routes::routes())
            .merge(decision_routes::routes())
            .merge(server_routes::routes())
            .merge(connectors::routes())
            .merge(execute::routes())
            .merge(remote::routes(self))
            .merge(health::routes())
            .merge(welcome::routes())
            .merge(scrape::routes())
            .merge(description::routes())
            .merge(mounted(false))
            .route("/v1/{*path}", any(answers::unknown))
            // Not the usual one, which a merge would leave outside the layers.
            .fallback(async || StatusCode::NOT_FOUND)
            .layer(DefaultBodyLimit::max(self.options.http.max_body))
            .layer(from_fn_with_state(self.clone(), auth::check))
            .layer(hosts::cors(&self.options.http.origins, mounts))
            // A link names its caller, and pages behind it have an origin of their own.
            .merge(preview::link_routes(self))
            // Its page is for everybody; what it shows comes from the API.
            .merge(console::routes(self.options.http.console))
            .merge(mounted(true))
            .layer(from_fn_with_state(self.clone(), hosts::check))
            .layer(from_fn_with_state(self.clone(), replicas::refuse))
            .layer(from_fn_with_state(mounts.to_vec(), mount::speak))
            .layer(CatchPanicLayer::custom(answers::panicked))
            .layer(from_fn_with_state(self.options.http.max_body, answers::complete))
            .layer(from_fn(anthropic::form))
            .layer(from_fn(move |request, next| {
                observe::observe(body_timeout, request, next)
            }))
            .with_state(self.clone());
        // Around all of it: it may change the path, by which routes are chosen.
        Router::new()
            .fallback_service(served)
            .layer(from_fn_with_state(self.clone(), preview::host::serve))
    }
}

/// Puts routes of a mounted service behind what every answer has.
fn answered(routes: Router, options: &HttpServerOptions) -> Router {
    let body_timeout = options.body_timeout;
    routes
        .layer(CatchPanicLayer::custom(answers::panicked))
        .layer(from_fn_with_state(options.max_body, answers::complete))
        .layer(from_fn(move |request, next| {
            observe::observe(body_timeout, request, next)
        }))
}

#[cfg(test)]
mod tests;
