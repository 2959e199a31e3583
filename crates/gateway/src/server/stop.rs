//! Serving to the end: what runs is let come to its end, or is ended.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::Acceptor;
use super::start::{ServeError, check};
use super::tls::{Tls, TlsError};
use super::{Mount, scrape};
use crate::options::TlsOptions;
use crate::replicas;
use crate::state::Gateway;

/// Maximum time in which turns that have to end report that to their clients.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Time between two looks for revoked and expired keys whose connections go on.
const REVOKED: Duration = Duration::from_secs(2);
/// Interval between two writes of the usage.
const FLUSH: Duration = Duration::from_secs(5);

/// A gateway that has started, and answers once it runs.
#[derive(Debug)]
#[must_use = "nothing is answered until it runs"]
pub struct GatewayServer {
    gateway: Gateway,
    acceptor: Acceptor,
    listener: TcpListener,
    metrics: Option<TcpListener>,
    /// Listeners of mounted services, with what they answer.
    others: Vec<(TcpListener, Router, Option<Arc<Tls>>)>,
}

impl GatewayServer {
    /// Also answers on the listener of a mounted service, with TLS of its own or none. The service checks
    /// `Host` and `Origin` itself; connections are limited, and answers completed and logged as the
    /// gateway's own.
    ///
    /// # Errors
    ///
    /// The files for TLS cannot be used.
    pub fn with_listener(
        mut self,
        listener: TcpListener,
        routes: Router,
        tls: Option<&TlsOptions>,
    ) -> Result<Self, TlsError> {
        let routes = super::answered(routes, &self.gateway.options.http);
        let tls = tls.map(Tls::load).transpose()?;
        self.others.push((listener, routes, tls.map(Arc::new)));
        Ok(self)
    }

    /// Answers until the gateway is stopped; then hands over what others can do, and lets running
    /// requests end, for a while.
    pub async fn run(self) -> Result<(), ServeError> {
        let (gateway, acceptor) = (self.gateway, self.acceptor);
        gateway.tasks.spawn(crate::containers::sweep(gateway.clone()));
        gateway
            .tasks
            .spawn(crate::state::sessions::sweep(gateway.clone()));
        if let Some(listener) = self.metrics {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "listening for metrics");
            }
            let metrics = Acceptor {
                router: scrape::routes().with_state(gateway.clone()),
                tls: None,
                ..acceptor.clone()
            };
            tokio::spawn(async move { metrics.run(&listener).await });
        }
        for (listener, router, tls) in self.others {
            let other = Acceptor {
                router,
                tls,
                ..acceptor.clone()
            };
            tokio::spawn(async move { other.run(&listener).await });
        }
        let writing = tokio::spawn(gateway.clone().write_usage());
        let revoking = tokio::spawn(gateway.clone().end_revoked());
        let holding = tokio::spawn(crate::responses::hold(gateway.clone()));
        let ended = async {
            gateway.draining.cancelled().await;
            let began = Instant::now();
            replicas::hand_over(&gateway).await;
            gateway.stopping.cancel();
            let grace = gateway.options.http.grace;
            gateway
                .drain(&acceptor, grace.saturating_sub(began.elapsed()))
                .await;
        };
        // The port is open to the end: load balancers read there that it is not ready.
        tokio::select! {
            () = ended => {}
            () = acceptor.clone().run(&self.listener) => {}
        }
        drop(self.listener);
        gateway.containers.close().await;
        writing.abort();
        revoking.abort();
        holding.abort();
        gateway.quotas.flush().await?;
        gateway.runs.flush().await;
        crate::responses::release(&gateway).await;
        Ok(())
    }
}

impl Gateway {
    /// Answers on a listener until it is stopped; then lets running requests end, for a while.
    ///
    /// When this returns no turn runs any more. Sandboxes that sessions still hold end with the
    /// interpreter, when the gateway is dropped.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), ServeError> {
        self.start(listener, &[]).await?.run().await
    }

    /// Does everything that can fail before the first request is answered, and answers none yet.
    ///
    /// The services of others are served beside its own routes. What they do beyond a request they
    /// put among its `tasks`, and end when `ending` says so.
    pub async fn start(&self, listener: TcpListener, mounts: &[Mount]) -> Result<GatewayServer, ServeError> {
        check(&self.options, &self.records).await?;
        let address = self.options.listen;
        let listen = |source| ServeError::Listen { address, source };
        self.cannot_be_exposed(listener.local_addr().map_err(listen)?)
            .await?;
        self.tell_what_is_missing();
        let tls = self.options.tls.as_ref().map(Tls::load).transpose()?;
        crate::responses::start(self).await?;
        let metrics = match self.options.metrics.listen {
            Some(address) => {
                let listen = |source| ServeError::Listen { address, source };
                Some(TcpListener::bind(address).await.map_err(listen)?)
            }
            None => None,
        };
        let acceptor = Acceptor {
            router: self.router_with(mounts),
            max_connections: self.options.http.max_connections,
            header_timeout: self.options.http.header_timeout,
            write_timeout: self.options.http.write_timeout,
            live: self.connections.clone(),
            tls: tls.map(Arc::new),
            draining: self.draining.clone(),
            stopping: self.stopping.clone(),
            closing: CancellationToken::new(),
            connections: TaskTracker::new(),
        };
        Ok(GatewayServer {
            gateway: self.clone(),
            acceptor,
            listener,
            metrics,
            others: Vec::new(),
        })
    }

    /// Begins to stop; a second call stops at once. A gateway that others reach drains first.
    pub fn stop(&self) {
        let again = self.draining.is_cancelled();
        self.draining.cancel();
        if again {
            self.hurrying.cancel();
            self.ending.cancel();
        }
        if again || !self.records.is_shared() || self.options.advertise.is_none() {
            self.stopping.cancel();
        }
    }

    /// Waits for what runs, for so long, then ends it, and closes the port.
    async fn drain(&self, acceptor: &Acceptor, grace: Duration) {
        self.tasks.close();
        acceptor.connections.close();
        let quiet = async {
            acceptor.connections.wait().await;
            self.tasks.wait().await;
        };
        tracing::info!(
            connections = acceptor.connections.len(),
            tasks = self.tasks.len(),
            grace_seconds = grace.as_secs_f64(),
            "stopping"
        );
        if self.within(grace, quiet).await {
            acceptor.closing.cancel();
            return;
        }
        self.ending.cancel();
        let quiet = async {
            acceptor.connections.wait().await;
            self.tasks.wait().await;
        };
        if !self.within(LAST_WORDS, quiet).await {
            tracing::warn!(
                connections = acceptor.connections.len(),
                tasks = self.tasks.len(),
                "stopping although something still runs"
            );
        }
        acceptor.closing.cancel();
    }

    /// Whether something comes to its end in time.
    async fn within(&self, limit: Duration, end: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = end => true,
            () = tokio::time::sleep(limit) => false,
            () = self.hurrying.cancelled() => false,
        }
    }

    /// A listener may be bound to something else than the options say.
    async fn cannot_be_exposed(&self, address: std::net::SocketAddr) -> Result<(), ServeError> {
        let public = !address.ip().is_loopback() && self.options.listen.ip().is_loopback();
        if public && !self.options.auth.required && !self.keys.any_usable().await? {
            return Err(ServeError::Exposed { address });
        }
        Ok(())
    }

    /// Protections that are missing are worth a line in the log of every start.
    fn tell_what_is_missing(&self) {
        let Ok(interpreter) = self.interpreter() else {
            // Such a server tells of no protection.
            tracing::warn!(
                target: crate::SECURITY,
                event = "protections_unknown",
                "code runs at a server that only executes"
            );
            return;
        };
        let report = interpreter.report();
        let inactive = report.0.keys().filter(|&&it| !report.is_active(it));
        let name = |it| Some(serde_json::to_value(it).ok()?.as_str()?.to_owned());
        let missing: Vec<_> = inactive.filter_map(name).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            tracing::warn!(target: crate::SECURITY, event = "protections_missing", missing);
        }
    }

    /// Ends connections of owners whose keys are revoked or have expired.
    async fn end_revoked(self) {
        let mut pace = tokio::time::interval(REVOKED);
        loop {
            pace.tick().await;
            for owner in self.connections.owners() {
                match self.is_usable(&owner).await {
                    Ok(true) => {}
                    Ok(false) => {
                        let connections = self.connections.close(&owner);
                        tracing::info!(
                            target: crate::SECURITY,
                            event = "connections_ended",
                            key = owner,
                            connections
                        );
                    }
                    Err(error) => {
                        tracing::debug!(error = &error as &dyn std::error::Error, "look for revoked keys");
                        break;
                    }
                }
            }
        }
    }

    async fn write_usage(self) {
        let mut pace = tokio::time::interval(FLUSH);
        loop {
            pace.tick().await;
            if let Err(error) = self.quotas.flush().await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "write down what was used"
                );
            }
        }
    }
}
