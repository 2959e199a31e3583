//! Functions that a configuration gives to code: its connectors, and the servers of tools that are offered to
//! code.

use std::path::Path;
use std::sync::Arc;

use cellblock_connector::{ConnectorOptions, SecretSource};
use cellblock_interpreter::connector::{Connector, with_approval};

use super::check::Check;
use super::sections::connectors::report;
use super::{ConfigError, LoadedConfig, OfferedServer};

impl LoadedConfig {
    /// The connectors of code. Secrets are read now; nothing is connected yet.
    pub(crate) fn connectors(
        &self,
        servers: &[OfferedServer],
    ) -> Result<Vec<Arc<dyn Connector>>, ConfigError> {
        let mut check = Check::new(&self.tree);
        let mut connectors: Vec<_> = servers.iter().filter_map(OfferedServer::connector).collect();
        let folder = self.path(Path::new(""));
        for (name, options) in &self.settings.connectors.0 {
            if let ConnectorOptions::Mcp(options) = options {
                // A missing server is a mistake that is reported when the configuration is read.
                let server = servers
                    .iter()
                    .find(|server| Some(server.name()) == options.server.as_deref());
                connectors.extend(server.map(|server| {
                    let (description, tools) = (&options.description, options.tools.clone());
                    let selected = server.for_code().selected(name, description, tools);
                    with_approval(Arc::new(selected), options.approval)
                }));
                continue;
            }
            match options.connector(name, Some(&folder)) {
                Ok(connector) => connectors.push(connector),
                Err(mistakes) => report(name, mistakes, &mut check),
            }
        }
        if check.mistakes.is_empty() {
            Ok(connectors)
        } else {
            Err(ConfigError::Wrong(check.mistakes))
        }
    }

    /// Reads a secret, which is at this path.
    pub(super) fn secret(
        &self,
        path: &[&str],
        source: &SecretSource,
        check: &mut Check<'_>,
    ) -> Option<String> {
        let read = source.read(Some(&self.path(Path::new(""))));
        read.unwrap_or_else(|problem| {
            check.wrong(path, problem);
            None
        })
    }
}
