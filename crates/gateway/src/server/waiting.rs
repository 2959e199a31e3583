//! A server whose sandboxes are not there yet: it listens, and says why it is not ready.

use std::future::{pending, ready};
use std::sync::Arc;

use axum::Router;
use axum::response::IntoResponse as _;
use axum::routing::get;
use cellblock_agent::wire::{ApiError, ErrorKind};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::Acceptor;
use super::start::ServeError;
use super::tls::Tls;
use crate::health;
use crate::options::Options;
use crate::problem::Problem;
use crate::state::connections::LiveConnections;

/// The reason for which a server is not ready yet, as its clients read it. Clones share it.
#[derive(Clone, Debug)]
pub struct StartReason(Arc<Mutex<String>>);

impl StartReason {
    /// Creates one that begins with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(text.into())))
    }

    /// Replaces the text.
    pub fn set(&self, text: impl Into<String>) {
        *self.0.lock() = text.into();
    }

    fn text(&self) -> String {
        self.0.lock().clone()
    }
}

/// Drives `start` to its end, and answers on the listener meanwhile: `/healthz` that the process
/// runs, everything else 503 with the reason.
pub async fn answer_meanwhile<T>(
    options: &Options,
    listener: &TcpListener,
    reason: &StartReason,
    start: impl Future<Output = T>,
) -> Result<T, ServeError> {
    let (of_probe, of_others) = (reason.clone(), reason.clone());
    let routes = Router::new()
        .route("/healthz", get(health::healthz))
        .route(
            "/readyz",
            get(move || ready(health::not_now("not_ready", of_probe.text()))),
        )
        .fallback(move || ready(Problem::from(starting(&of_others)).into_response()));
    let tls = options.tls.as_ref().map(Tls::load).transpose()?;
    // Every answer ends its connection, so that the next request reaches the server itself. A
    // connection that was just opened is not cut.
    let draining = CancellationToken::new();
    draining.cancel();
    let acceptor = Acceptor {
        router: super::answered(routes, &options.http),
        max_connections: options.http.max_connections,
        header_timeout: options.http.header_timeout,
        write_timeout: options.http.write_timeout,
        live: LiveConnections::default(),
        tls: tls.map(Arc::new),
        draining,
        stopping: CancellationToken::new(),
        closing: CancellationToken::new(),
        connections: TaskTracker::new(),
    };
    let answering = async {
        acceptor.run(listener).await;
        pending::<T>().await
    };
    Ok(tokio::select! {
        started = start => started,
        never = answering => never,
    })
}

fn starting(reason: &StartReason) -> ApiError {
    ApiError {
        kind: ErrorKind::Unavailable,
        code: Some("starting".to_owned()),
        message: format!(
            "the gateway cannot run code yet: {}; send the request again",
            reason.text()
        ),
        param: None,
    }
}
