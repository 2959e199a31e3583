//! How a gateway is set up. A group of options belongs to the module that obeys it.

use std::net::{Ipv4Addr, SocketAddr};

use crate::containers::ContainerOptions;
use crate::execute::ExecuteOptions;
use crate::files::FileOptions;
use crate::metrics::MetricsOptions;
use crate::quotas::QuotaOptions;
use crate::responses::ResponseOptions;
use crate::server::{AuthOptions, ConnectionOptions, HostOptions, StopOptions, TlsOptions};
use crate::sessions::SessionsOptions;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The most bytes of a request's body, but of an upload.
    pub max_body: usize,
    /// The most model calls of a turn.
    pub max_steps: u32,
    /// How responses are answered and kept.
    pub responses: ResponseOptions,
    /// Who may call.
    pub auth: AuthOptions,
    /// How much callers may have and use.
    pub quotas: QuotaOptions,
    /// By which names it is reached, and from which pages.
    pub hosts: HostOptions,
    /// What a connection may take.
    pub connections: ConnectionOptions,
    /// Certificates, where it encrypts.
    pub tls: Option<TlsOptions>,
    /// Who is told what was counted.
    pub metrics: MetricsOptions,
    /// How it stops.
    pub stop: StopOptions,
    /// Sessions.
    pub sessions: SessionsOptions,
    /// The sandbox server.
    pub execute: ExecuteOptions,
    /// Containers.
    pub containers: ContainerOptions,
    /// Files.
    pub files: FileOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            max_body: 16 << 20,
            max_steps: 20,
            responses: ResponseOptions::default(),
            auth: AuthOptions::default(),
            quotas: QuotaOptions::default(),
            hosts: HostOptions::default(),
            connections: ConnectionOptions::default(),
            tls: None,
            metrics: MetricsOptions::default(),
            stop: StopOptions::default(),
            sessions: SessionsOptions::default(),
            execute: ExecuteOptions::default(),
            containers: ContainerOptions::default(),
            files: FileOptions::default(),
        }
    }
}
