//! Other people's HTTP protocols over Cellblock's sessions, so that the clients people already have
//! work unchanged.
//!
//! ```text
//! client ──its own protocol──> dialect ──hosting──> Session
//! ```
//!
//! Each dialect is a module with its own routes, errors and forms of keys, below a path of its own.
//! What they share is the [`DialectHost`]: who calls ([`Doorkeeper`]), how much that may use
//! ([`Meter`](cellblock_interpreter::hosting::Meter)), and how sessions are made. A dialect is
//! served if the configuration names it; otherwise its path says so ([`off`]).

mod attended;
mod bounded;
mod decoder;
mod door;
mod e2b;
mod fault;
mod files;
mod forward;
mod host;
mod instant;
pub mod jupyter;
mod librechat;
mod notebook;
mod off;
pub mod open_terminal;
mod opensandbox;
mod options;
mod presented;
mod rules;
mod session;
mod shown;
mod terminal;
mod uuid;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::request::Parts;
use cellblock_interpreter::egress::{LocalAuthorityError, LocalCertificate};
use tokio::net::TcpListener;

pub use door::{Doorkeeper, NoEntry};
pub use host::{DialectError, DialectHost, DialectTerms, SessionWish};
pub use librechat::{JwtKey, JwtOptions, LibreChatOptions};
pub use opensandbox::OpenSandboxOptions;
pub use options::{BuildOptions, DialectsOptions, DomainTls, E2bOptions};
pub use session::{DialectSession, DialectSessions};

/// A dialect's routes, and the path that they are below.
#[derive(Clone, Debug)]
pub struct DialectMount {
    /// The path, such as `/e2b`.
    pub path: &'static str,
    /// The routes, without that path.
    pub routes: Router,
    /// Finds the id of a sandbox, or of a login, in a request that may present no key. It begins
    /// with the mark of its server.
    pub named: NamedSandbox,
}

/// An address that one dialect listens at alone. The program around accepts its connections, and
/// limits them as its own.
#[derive(Debug)]
pub struct DialectListener {
    /// The listener.
    pub listener: TcpListener,
    /// Routes that are served there.
    pub routes: Router,
    /// Files for TLS; without them, it speaks plain HTTP.
    pub tls: Option<LocalCertificate>,
}

/// Everything that is served for dialects.
#[derive(Debug)]
pub struct DialectRoutes {
    /// Routes of every dialect.
    pub served: Vec<DialectMount>,
    /// Addresses of the dialects' own.
    pub listeners: Vec<DialectListener>,
}

/// A dialect cannot listen at an address of its own.
#[derive(Debug, thiserror::Error)]
pub enum DialectListenError {
    /// The address is not free, or not one of this machine.
    #[error(
        "cannot listen at {address} for clients of E2B; free it, or change `debug` or `listen` in `dialects: \
         {{e2b: …}}`"
    )]
    Address {
        /// The address.
        address: SocketAddr,
        /// Reason of the failure.
        source: io::Error,
    },
    /// The domain of its hosts is invalid.
    #[error(
        "invalid `domain` `{domain}` in `dialects: {{e2b: …}}`: {why}; write it as in `cell.example` or \
         `cell.localhost:8443`"
    )]
    Domain {
        /// The domain.
        domain: String,
        /// The problem.
        why: String,
    },
    /// There is no certificate for the hosts of the domain.
    #[error("cannot make a certificate for the hosts of `dialects: {{e2b: {{domain}}}}`")]
    Certificate(#[from] LocalAuthorityError),
}

/// Reads the id of the sandbox that a request names.
type NamedSandbox = fn(&Parts) -> Option<String>;

/// Returns the routes of every dialect, and listens at addresses of their own. The routes of a
/// dialect that is off say that it is.
///
/// # Errors
///
/// A dialect with addresses of its own listens at them already, or fails.
pub fn routes(host: &DialectHost, options: &DialectsOptions) -> Result<DialectRoutes, DialectListenError> {
    let mut listeners = Vec::new();
    let e2b = options.e2b.as_ref();
    let e2b = e2b.map(|it| e2b::routes(host, it, &mut listeners)).transpose()?;
    let all: [(_, _, _, NamedSandbox); 5] = [
        ("/e2b", "e2b", e2b, e2b::named),
        (
            "/jupyter",
            "jupyter",
            options.jupyter.as_ref().map(|it| jupyter::routes(host, it)),
            jupyter::named,
        ),
        (
            "/librechat",
            "librechat",
            options.librechat.as_ref().map(|it| librechat::routes(host, it)),
            // Each request presents a key or a token.
            |_| None,
        ),
        (
            "/open-terminal",
            "open_terminal",
            options
                .open_terminal
                .as_ref()
                .map(|it| open_terminal::routes(host, it)),
            open_terminal::named,
        ),
        (
            "/opensandbox",
            "opensandbox",
            options
                .opensandbox
                .as_ref()
                .map(|it| opensandbox::routes(host, it)),
            opensandbox::named,
        ),
    ];
    let served = all
        .into_iter()
        .map(|(path, setting, routes, named)| DialectMount {
            path,
            named,
            routes: routes.unwrap_or_else(|| off::routes(setting)),
        });
    Ok(DialectRoutes {
        served: served.collect(),
        listeners,
    })
}
