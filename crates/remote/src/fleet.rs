//! Connecting to servers of which each is started for one sandbox, such as pods.

use std::sync::Arc;

use super::connect::RemoteConfig;
use super::link::Link;
use super::wire::Hello;
use cellblock_sandbox::Result;
use cellblock_sandbox::backend::BoxFuture;

/// Starts a server, and returns how to connect to it.
pub type StartServer = Arc<dyn Fn() -> BoxFuture<'static, Result<StartedServer>> + Send + Sync>;

/// A server for one sandbox.
pub struct StartedServer {
    /// Settings for connecting to it.
    pub config: RemoteConfig,
    /// Dropped when the connection is closed, or could not be made: ends the server.
    pub keep: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for StartedServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut started = formatter.debug_struct("StartedServer");
        started.field("config", &self.config).finish_non_exhaustive()
    }
}

/// Servers that are started on demand.
#[derive(Clone)]
pub struct FleetConfig {
    /// Name of the servers in messages.
    pub name: String,
    /// Name of the backend that starts them.
    pub backend: &'static str,
    /// Description of the wall around each.
    pub wall: Option<String>,
    /// Starts one.
    pub start: StartServer,
}

impl std::fmt::Debug for FleetConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FleetConfig")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl FleetConfig {
    pub(super) async fn connect(&self) -> Result<(Link, Hello)> {
        let StartedServer { config, keep } = (self.start)().await?;
        let (link, hello) = config.connect().await?;
        Ok((link.keeping(Some(keep)), hello))
    }
}
