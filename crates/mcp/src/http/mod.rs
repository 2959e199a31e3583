//! A server over HTTP, as a tower service to mount at `/mcp`.
//!
//! ```ignore
//! let owner = |request| Some(Owner::new(request.extensions.get::<Caller>()?.owner.clone()));
//! let service = http::service(&server, owner, options);
//! let router = axum::Router::new().route_service("/mcp", service);
//! ```

use std::sync::Arc;

pub use ::http::request::Parts;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{OwnerOf, Server};
use cellblock_interpreter::hosting::Owner;

mod endpoint;

pub use endpoint::Endpoint;

/// Bytes of a request: a file of 5 MiB in base64, and some.
const MOST_BYTES: usize = 8 << 20;

/// Headers of the protocol that requests have.
pub const REQUEST_HEADERS: [&str; 5] = [
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "last-event-id",
];
/// Headers of the protocol that answers have.
pub const RESPONSE_HEADERS: [&str; 1] = ["mcp-session-id"];

/// Options for reaching a server.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Whether `Host` and `Origin` were checked before a request comes here; the two lists are not
    /// looked at then.
    pub checked: bool,
    /// Allowed values of `Host`, with or without a port; loopback names if there is none.
    pub allowed_hosts: Vec<String>,
    /// Allowed values of `Origin`, such as `https://app.example.com:443` or `http://localhost:*`. A request
    /// with another one is refused, one without passes: browsers send it, other clients do not.
    pub allowed_origins: Vec<String>,
    /// The most bytes of a request.
    pub max_body: usize,
    /// Canceled when the server stops: streams end where they are.
    pub stopping: CancellationToken,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            checked: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body: MOST_BYTES,
            stopping: CancellationToken::new(),
        }
    }
}

/// The answer to a request that did not reach the service: an error without the ID of a request,
/// because the request was not read.
pub fn refusal(why: &str) -> String {
    let error = ErrorData::invalid_request(why.to_owned(), None);
    json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string()
}

/// A tower service that answers MCP over streamable HTTP. `owner` says whose a request is; one that
/// is nobody's is refused.
///
/// No state is kept between requests but the sessions of code. A client that closes the stream of
/// its call interrupts it; one of the revisions before 2026-07-28 may say so in a request of its
/// own, too.
pub fn service(
    server: &Server,
    owner: impl Fn(&Parts) -> Option<Owner> + Send + Sync + 'static,
    options: HttpOptions,
) -> Endpoint {
    behind(server, owner, options, |server| server)
}

/// The same with something between the protocol and the server, such as the
/// [fixtures](crate::fixtures::Fixtures) of the conformance suite.
pub fn behind<H: ServerHandler + Clone>(
    server: &Server,
    owner: impl Fn(&Parts) -> Option<Owner> + Send + Sync + 'static,
    options: HttpOptions,
    between: impl FnOnce(Server) -> H,
) -> Endpoint<H> {
    let owner: OwnerOf = Arc::new(owner);
    let server = server.for_requests(Arc::clone(&owner));
    Endpoint {
        max_body: options.max_body,
        inner: protocol(between(server.clone()), options),
        server,
        owner,
    }
}

/// The protocol before a handler.
fn protocol<H: ServerHandler + Clone>(
    handler: H,
    options: HttpOptions,
) -> StreamableHttpService<H, LocalSessionManager> {
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_cancellation_token(options.stopping)
        .with_max_request_body_bytes(options.max_body)
        .with_allowed_origins(options.allowed_origins)
        .enforce_origin_validation();
    if options.checked {
        config = config.disable_allowed_hosts().disable_allowed_origins();
    } else if !options.allowed_hosts.is_empty() {
        // An empty list would let every host pass.
        config = config.with_allowed_hosts(options.allowed_hosts);
    }
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}
