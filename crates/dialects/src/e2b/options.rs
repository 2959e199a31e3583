//! Options of the dialect.

use std::net::SocketAddr;

use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of the certificate for hosts of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "E2bTls")]
#[serde(rename_all = "snake_case")]
pub enum DomainTls {
    /// An authority of this server.
    Local,
}

/// E2B's API, served at `/e2b`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "E2b")]
#[serde(default, deny_unknown_fields)]
pub struct E2bOptions {
    /// Serve clients with `E2B_DEBUG=true`: listen on the ports 3000, 49983 and 49999 of loopback.
    /// All clients of a key share one sandbox.
    pub debug: bool,
    /// Domain of sandboxes, whose hosts are `<port>-<id>.<domain>`, and of the API, whose host is
    /// `api.<domain>`; with a port if clients reach these hosts at another one than that of HTTPS, as
    /// in `cell.localhost:8443`. Without `tls`, a proxy with a wildcard certificate has to pass
    /// requests to these hosts on to `listen`.
    pub domain: Option<String>,
    /// TLS for hosts of the domain: `local` uses a certificate of an authority that the server
    /// makes once, in `authorities` of its data directory, and that clients have to trust. Without
    /// it, `listen` speaks plain HTTP.
    pub tls: Option<DomainTls>,
    /// Address at which requests to hosts of the domain are expected; by default the domain's port on
    /// loopback, with `tls: local` or a domain below `localhost`. Its peers count as callers without a
    /// key only on loopback.
    pub listen: Option<SocketAddr>,
    /// Templates that stand for the server's image, in addition to `base` and `code-interpreter-v1`.
    pub templates: Vec<String>,
    /// Maximum timeout of a sandbox in seconds; by default 24 hours.
    pub max_timeout: Option<u64>,
    /// Let clients build templates, in sandboxes. They are kept in volumes of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<BuildOptions>,
}

/// Builds of templates by clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "E2bBuilds")]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// Base images, such as `ubuntu:24.04`, that stand for the server's image, in addition to
    /// `e2bdev/base`, `python` with the version of the image, and `node` if the image has it.
    pub images: Vec<String>,
    /// Maximum duration of a build in seconds.
    pub max_timeout: u64,
    /// Maximum number of builds that run at the same time, of all keys. Others wait.
    pub max_concurrent: usize,
    /// Maximum size of a build's archive.
    #[serde(with = "Size")]
    pub max_bytes: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            images: Vec::new(),
            max_timeout: 1800,
            max_concurrent: 2,
            max_bytes: 256 << 20,
        }
    }
}
