//! How a gateway is set up. A group of options belongs to the module that obeys it.

use std::net::{Ipv4Addr, SocketAddr};

use crate::containers::ContainerOptions;
use crate::files::FileOptions;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The most bytes of a request's body, but of an upload.
    pub max_body: usize,
    /// The most model calls of a turn.
    pub max_steps: u32,
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
            containers: ContainerOptions::default(),
            files: FileOptions::default(),
        }
    }
}
