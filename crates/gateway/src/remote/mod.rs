//! Code that runs elsewhere: finding out what is at an address.

mod routes;
mod socket;

use cellblock_agent::provider::ProviderKey;
use cellblock_interpreter::Error;
use cellblock_interpreter::protection::Demands;
use cellblock_interpreter::remote::{RemoteBackend, RemoteConfig, http_status};

pub(crate) use routes::routes;
pub use socket::upgrade;

use crate::execute_server::{ExecuteServer, ExecuteServerError, ExecuteServerOptions, ServerHealth};

/// The path of the full protocol below an address.
const SANDBOX: &str = "v1/sandbox";

/// Location at which code is to run, and the options for its requests.
#[derive(Clone, Debug)]
pub struct Site {
    /// The server's address, below which are `/v1/sandbox` or `/execute` and `/health`.
    pub url: String,
    /// Sent as `Authorization: Bearer …`.
    pub key: Option<ProviderKey>,
    /// Whether code, data and key may travel unencrypted to another machine.
    pub allow_plain: bool,
    /// Demands for each protection. A server that only executes tells of none, and is not asked.
    pub demands: Demands,
}

/// Server that was found.
#[derive(Debug)]
pub enum FoundServer {
    /// Another Cellblock: sessions, files and everything else work as on this machine.
    Cellblock(Box<RemoteBackend>),
    /// A server that runs code and keeps nothing.
    Execute(Box<ExecuteServer>, ServerHealth),
}

/// Reason that nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Another Cellblock cannot be used, or nothing can be reached.
    #[error("use the sandboxes at `{url}`")]
    Sandboxes {
        /// The address.
        url: String,
        /// Reason.
        source: Error,
    },
    /// It has no sandboxes, and cannot execute either.
    #[error("run code at `{url}`, which has no `/{SANDBOX}`")]
    Execute {
        /// The address.
        url: String,
        /// Reason.
        source: ExecuteServerError,
    },
}

/// Finds out what is at an address: sandboxes, or else, where the server says that it has none, a
/// server that only executes.
pub async fn connect(site: &Site) -> Result<FoundServer, ConnectError> {
    let url = site.url.trim_end_matches('/');
    let sandboxes = |error: cellblock_interpreter::Error| ConnectError::Sandboxes {
        url: shown(url),
        source: error,
    };
    let config = config(site, url).map_err(sandboxes)?;
    let error = match RemoteBackend::start(config, site.demands.clone()).await {
        Ok(backend) => {
            tracing::info!(
                url = shown(url),
                image = backend.manifest().short_id(),
                "code runs in the sandboxes of another Cellblock"
            );
            return Ok(FoundServer::Cellblock(Box::new(backend)));
        }
        Err(error) => error,
    };
    if !matches!(http_status(&error), Some(404 | 405 | 426)) {
        return Err(sandboxes(error.into()));
    }
    let execute = |source| ConnectError::Execute {
        url: shown(url),
        source,
    };
    let options = ExecuteServerOptions {
        key: site.key.clone(),
        allow_plain: site.allow_plain,
        ..ExecuteServerOptions::default()
    };
    let server = ExecuteServer::new(url, options).map_err(execute)?;
    let health = server.health().await.map_err(execute)?;
    tracing::info!(
        url = shown(url),
        runtime = health.runtime_version,
        "code runs at a server that only executes: variables and files are not kept from call to call, \
         and it tells of no protection"
    );
    Ok(FoundServer::Execute(Box::new(server), health))
}

fn config(site: &Site, url: &str) -> Result<RemoteConfig, Error> {
    let mut config = RemoteConfig::new(&format!("{url}/{SANDBOX}"))?;
    if let Some(key) = &site.key {
        config = config.with_key(key.reveal())?;
    }
    Ok(if site.allow_plain {
        config.allow_plain()
    } else {
        config
    })
}

/// An address without what may be secret in it.
fn shown(url: &str) -> String {
    let without_query = url.split(['?', '#']).next().unwrap_or_default();
    match without_query.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => without_query.to_owned(),
    }
}

#[cfg(test)]
mod tests;
