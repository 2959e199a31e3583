//! Options of the HTTP server: connections, names, certificates, and who may read the metrics.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpServerOptions {
    /// Maximum size of a request body; uploads have their own limit.
    #[serde(with = "Size")]
    pub max_body: usize,
    /// Accepted host names, in addition to `localhost` and the server's address. Beyond loopback
    /// all names are accepted unless some are listed.
    pub hosts: Vec<String>,
    /// Web origins that may call the server, such as `https://app.example.com`.
    pub origins: Vec<String>,
    /// Domain below which each port of a session has a host of its own, `<port>-<session>.<domain>`, which
    /// all have to lead to the server. Its pages keep cookies and storage, so the domain must serve
    /// nothing else.
    pub preview_domain: Option<String>,
    /// Serve the console for people at `/console`.
    pub console: bool,
    /// Maximum number of concurrent connections; others wait. One client address has at most three
    /// quarters of them.
    pub max_connections: usize,
    /// Maximum time until a request's head is complete.
    #[serde(with = "Time")]
    pub header_timeout: Duration,
    /// Maximum pause while a request's body is sent.
    #[serde(with = "Time")]
    pub body_timeout: Duration,
    /// Maximum time in which a client reads nothing of a response; then its connection is closed.
    #[serde(with = "Time")]
    pub write_timeout: Duration,
    /// Time that running requests have to finish after the server is asked to stop, and with
    /// `advertise` also its sessions. `--grace` takes precedence.
    #[serde(with = "Time")]
    pub grace: Duration,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            max_body: 16 << 20,
            hosts: Vec::new(),
            origins: Vec::new(),
            preview_domain: None,
            console: true,
            max_connections: 1024,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(30),
        }
    }
}

/// Files with the certificates. They are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file with the server's certificate and its chain.
    pub certificates: PathBuf,
    /// PEM file with the certificate's private key.
    pub key: PathBuf,
}

/// Access to `GET /metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsOptions {
    /// Serve the metrics without a key.
    pub public: bool,
    /// Separate address and port that serve the metrics without a key.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
}
