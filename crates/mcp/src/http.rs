//! A server over HTTP, as a tower service to mount at `/mcp`.
//!
//! ```ignore
//! let service = http::service(&server, |request| Some(Owner::new(request.extensions.get::<Caller>()?.owner.clone())), options);
//! let router = axum::Router::new().route_service("/mcp", service);
//! ```

use std::sync::Arc;

use ::http::request::Parts;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::owner::Owner;
use crate::server::Server;

/// Bytes of a request: a file of 5 MiB in base64, and some.
const MOST_BYTES: usize = 8 << 20;

/// How a server is reached.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// What `Host` may say, with or without a port; loopback names if there is none.
    pub allowed_hosts: Vec<String>,
    /// What `Origin` may say, such as `https://app.example.com:443` or `http://localhost:*`. A request with another one is refused, one without
    /// passes: browsers send it, other clients do not.
    pub allowed_origins: Vec<String>,
    /// Told when the server stops: streams end.
    pub stopping: CancellationToken,
}

/// A tower service that answers MCP over streamable HTTP. `owner` says whose a request is; one that is nobody's is refused.
///
/// No state is kept between requests but the sessions of code: a client that closes the stream of its call interrupts it.
pub fn service(
    server: &Server,
    owner: impl Fn(&Parts) -> Option<Owner> + Send + Sync + 'static,
    options: HttpOptions,
) -> StreamableHttpService<Server, LocalSessionManager> {
    mount(server.for_requests(Arc::new(owner)), options)
}

/// The same of any handler, for tests that put something before the server.
#[doc(hidden)]
pub fn mount<H: ServerHandler + Clone>(
    handler: H,
    options: HttpOptions,
) -> StreamableHttpService<H, LocalSessionManager> {
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_cancellation_token(options.stopping)
        .with_max_request_body_bytes(MOST_BYTES)
        .with_allowed_origins(options.allowed_origins)
        .enforce_origin_validation();
    // An empty list would let every host pass.
    if !options.allowed_hosts.is_empty() {
        config = config.with_allowed_hosts(options.allowed_hosts);
    }
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}
