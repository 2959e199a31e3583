//! Parts of a proxy that a caller can replace.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::resolver::{HostResolver, SystemResolver};

/// Maximum number of connections that code has open at once.
const MAX_CONNECTIONS: usize = 64;

/// Settings of a proxy that are not part of its policy.
#[derive(Clone, Debug)]
pub struct EgressOptions {
    /// Resolver of names.
    pub resolver: Arc<dyn HostResolver>,
    /// Certificates of authorities that are trusted in addition to those of the system, for servers
    /// whose connections are intercepted.
    pub roots: Vec<CertificateDer<'static>>,
    /// Limits of time.
    pub timeouts: EgressTimeouts,
    /// Maximum number of connections that code has open at once.
    pub max_connections: usize,
}

/// Limits of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressTimeouts {
    /// Resolving a name, connecting to its addresses, and the TLS handshake.
    pub connect: Duration,
    /// Time until code has sent the head of a request, or its side of a TLS handshake; also the time
    /// that a connection without a request stays open.
    pub header: Duration,
    /// Time in which no byte passes.
    pub idle: Duration,
}

impl Default for EgressTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(30),
            idle: Duration::from_mins(5),
        }
    }
}

impl Default for EgressOptions {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            roots: Vec::new(),
            timeouts: EgressTimeouts::default(),
            max_connections: MAX_CONNECTIONS,
        }
    }
}
