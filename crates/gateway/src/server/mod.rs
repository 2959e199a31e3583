//! The HTTP server: its routes, and what every one of them needs.
//!
//! ```text
//! connection ── observe ── answers ── panics ── hosts ── CORS ── auth ── body limit ── route
//! ```

mod accept;
mod answers;
mod auth;
mod caller;
mod hosts;
mod json;
mod linger;
mod mount;
mod observe;
pub(crate) mod retry;
mod scrape;
mod start;
mod stop;
mod throttle;
mod tls;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use cellblock_agent::wire::ApiError;
use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;

pub use accept::ConnectionOptions;
pub use auth::AuthOptions;
pub use caller::Caller;
pub use hosts::HostOptions;
pub use json::Json;
pub use mount::{Form, Mount};
pub use observe::RequestId;
pub use start::{ServeError, check};
pub use stop::{Serving, StopOptions};
pub use tls::{TlsError, TlsOptions};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::execute::Slots;
use crate::keys::Keys;
use crate::models::{self, Models};
use crate::options::Options;
use crate::quotas::Quotas;
use crate::records::Records;
use crate::sessions::Sessions;
use crate::{
    artifacts, containers, conversations, execute, files, health, openapi, remote, responses, sessions,
    welcome,
};

/// Where metrics are told.
const METRICS: &str = "/metrics";

/// A gateway: what its routes share.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Shared>);

/// What routes share.
#[derive(Debug)]
pub struct Shared {
    /// How it is set up.
    pub options: Options,
    /// What it remembers.
    pub records: Records,
    /// Who may call.
    pub keys: Keys,
    /// How much.
    pub quotas: Quotas,
    /// The models that it offers.
    pub models: Models,
    /// What runs code.
    pub engine: Engine,
    /// Where files are kept.
    pub store: Store,
    /// Containers that are at hand.
    pub containers: Containers,
    /// The sessions of its REST.
    pub(crate) sessions: Sessions,
    /// Executions that may run at a time.
    pub(crate) slots: Slots,
    /// Told when it begins to stop: nothing new is taken on.
    pub stopping: CancellationToken,
    /// Told when what still runs has to end, some time after that: turns fail, streams are closed, sandboxes go.
    pub ending: CancellationToken,
    /// What responses share.
    pub(crate) responses: responses::Live,
    /// What goes on without a client and is waited for at the end.
    pub tasks: TaskTracker,
    /// Told when nothing is waited for any more.
    hurrying: CancellationToken,
}

impl std::ops::Deref for Gateway {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Gateway {
    /// A gateway that nobody can reach yet.
    pub fn new(options: Options, records: Records, models: Models, engine: impl Into<Engine>) -> Self {
        crate::metrics::start();
        let responses = responses::Live::new(&options.responses);
        let containers = Containers::new(&options.containers);
        let engine = engine.into();
        Self(Arc::new(Shared {
            keys: Keys::new(records.clone()),
            quotas: Quotas::new(options.quotas.clone(), records.clone()),
            sessions: Sessions::default(),
            slots: Slots::new(options.execute.concurrent),
            options,
            records,
            models,
            store: engine.store().clone(),
            engine,
            containers,
            responses,
            stopping: CancellationToken::new(),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
            hurrying: CancellationToken::new(),
        }))
    }

    /// The sandboxes; an error where code runs at a server that keeps nothing.
    pub fn interpreter(&self) -> Result<&Arc<Interpreter>, ApiError> {
        self.engine.interpreter()
    }

    /// Its routes, with all that stands before them. A layer around them that puts a [`Caller`] into a request's extensions has said who calls.
    pub fn router(&self) -> Router {
        self.router_with(&[])
    }

    /// The same, and services of others beside them.
    pub fn router_with(&self, mounts: &[Mount]) -> Router {
        let body_timeout = self.options.connections.body_timeout;
        let mounted = mounts
            .iter()
            .fold(Router::new(), |router, mount| router.merge(mount.route()));
        Router::new()
            .merge(responses::routes())
            .merge(conversations::routes())
            .merge(models::routes())
            .merge(containers::routes())
            .merge(files::routes())
            .merge(sessions::routes())
            .merge(artifacts::routes())
            .merge(execute::routes())
            .merge(remote::routes(self))
            .merge(health::routes())
            .merge(welcome::routes())
            .merge(scrape::routes())
            .merge(openapi::routes())
            .merge(mounted)
            .route("/v1/{*path}", any(answers::unknown))
            .layer(DefaultBodyLimit::max(self.options.max_body))
            .layer(from_fn_with_state(self.clone(), auth::check))
            .layer(hosts::cors(&self.options.hosts, mounts))
            .layer(from_fn_with_state(self.clone(), hosts::check))
            .layer(from_fn_with_state(mounts.to_vec(), mount::speak))
            .layer(CatchPanicLayer::custom(answers::panicked))
            .layer(from_fn(answers::complete))
            .layer(from_fn(move |request, next| {
                observe::observe(body_timeout, request, next)
            }))
            .with_state(self.clone())
    }
}

#[cfg(test)]
mod tests;
