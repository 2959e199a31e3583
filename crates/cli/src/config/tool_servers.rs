//! The servers of tools that a configuration names, and those that it lets requests name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cellblock_agent::{ToolServer, ToolServers};
use cellblock_connector::{secret_file, variable};
use cellblock_interpreter::connector::{Connector, Redaction};
use cellblock_mcp_client::{
    Address, ForeignServer, RequestedServers, ServerConnector, ServerOptions, StdioProgram, Transport,
};

use super::check::Check;
use super::{ConfigError, LoadedConfig, OfferPolicy};

/// A server of tools.
#[derive(Debug)]
pub(crate) struct OfferedServer {
    server: Arc<ForeignServer>,
    /// Policy for the callers of its tools.
    pub(crate) offer: OfferPolicy,
    /// Removes the values that it gets from variables and files.
    redaction: Redaction,
}

impl OfferedServer {
    /// Returns the server for models.
    pub(crate) fn server(&self) -> Arc<dyn ToolServer> {
        Arc::clone(&self.server) as Arc<dyn ToolServer>
    }

    /// Returns the server for code, if code may call it.
    pub(crate) fn connector(&self) -> Option<Arc<dyn Connector>> {
        self.offer
            .to_code()
            .then(|| Arc::new(self.for_code()) as Arc<dyn Connector>)
    }

    /// Returns the server as a connector, also if code may not call all its tools.
    pub(super) fn for_code(&self) -> ServerConnector {
        ServerConnector::new(Arc::clone(&self.server), self.redaction.clone())
    }

    pub(super) fn name(&self) -> &str {
        self.server.label()
    }
}

impl LoadedConfig {
    /// The servers by name, and what finds those that requests name. Secrets are read now; nothing
    /// is started or asked yet.
    pub(crate) fn tool_servers(&self) -> Result<(Vec<OfferedServer>, Arc<dyn ToolServers>), ConfigError> {
        let mut check = Check::new(&self.tree);
        let mut offered = Vec::new();
        for (name, server) in &self.settings.mcp_servers.0 {
            let mut secrets = Vec::new();
            let Some(transport) = self.transport(name, server, &mut secrets, &mut check) else {
                continue;
            };
            let offer = server.offer;
            let server = Arc::new(ForeignServer::new(name, transport, server.clone()));
            offered.push(OfferedServer {
                server,
                offer,
                redaction: Redaction::new(secrets),
            });
        }
        if !check.mistakes.is_empty() {
            return Err(ConfigError::Wrong(check.mistakes));
        }
        let requested = RequestedServers::new(&self.settings.mcp_requests);
        Ok((offered, Arc::new(requested)))
    }

    fn transport(
        &self,
        name: &str,
        server: &ServerOptions,
        secrets: &mut Vec<String>,
        check: &mut Check<'_>,
    ) -> Option<Transport> {
        let url = match (&server.url, &server.url_env) {
            (Some(url), _) => Some(("url", Ok(url.clone()))),
            (None, Some(name)) => Some(("url_env", variable(name))),
            (None, None) => None,
        };
        let Some((written, url)) = url else {
            let shown = server.env.clone();
            let environment = self.values(
                name,
                shown,
                (&server.env_from, &server.env_files),
                "env",
                secrets,
                check,
            )?;
            let command = server.command.clone();
            return Some(Transport::Stdio(StdioProgram { command, environment }));
        };
        let shown = server.headers.clone();
        let mut headers = self.values(
            name,
            shown,
            (&server.headers_from, &server.headers_files),
            "headers",
            secrets,
            check,
        )?;
        let key = match (&server.key_env, &server.key_file) {
            (Some(name), _) => Some(("key_env", variable(name))),
            (None, Some(path)) => Some(("key_file", secret_file(&self.path(path)))),
            (None, None) => None,
        };
        let mut wrong = |key, problem: String| check.wrong(&["mcp_servers", name, key], problem);
        if let Some((written, key)) = key {
            let key = key.map_err(|problem| wrong(written, problem)).ok()?;
            headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
            secrets.push(key);
        }
        let url = url.map_err(|problem| wrong(written, problem)).ok()?;
        if written == "url_env" {
            secrets.extend(parts(&url));
        }
        match Address::new(&url, &headers, server.allow_http) {
            Ok(address) => Some(Transport::Http(address)),
            Err(error) => {
                let key = if error.is_of_headers() { "headers" } else { written };
                check.failed(&["mcp_servers", name, key], &error);
                None
            }
        }
    }

    /// Values by name: those that are shown, those of variables and those of files.
    fn values(
        &self,
        server: &str,
        shown: BTreeMap<String, String>,
        (variables, files): (&BTreeMap<String, String>, &BTreeMap<String, PathBuf>),
        form: &str,
        secrets: &mut Vec<String>,
        check: &mut Check<'_>,
    ) -> Option<Vec<(String, String)>> {
        let mut values: Vec<_> = shown.into_iter().collect();
        let (from, in_files) = (format!("{form}_from"), format!("{form}_files"));
        let variables = variables
            .iter()
            .map(|(name, source)| (&from, name, variable(source)));
        let files = files
            .iter()
            .map(|(name, path)| (&in_files, name, secret_file(&self.path(path))));
        let mut whole = true;
        for (key, name, read) in variables.chain(files) {
            match read {
                Ok(value) => {
                    // Without the scheme of an `Authorization`.
                    secrets.extend(value.rsplit_once(' ').map(|(_, value)| value.to_owned()));
                    secrets.push(value.clone());
                    values.push((name.clone(), value));
                }
                Err(error) => {
                    check.wrong(&["mcp_servers", server, key, name], error);
                    whole = false;
                }
            }
        }
        whole.then_some(values)
    }
}

/// A secret address, and those of its parts that may be what makes it secret.
fn parts(url: &str) -> Vec<String> {
    const SHORTEST: usize = 12;
    let pieces = url.split(['/', '?', '&', '=', '#', '@', ':']);
    let secrets = pieces.skip(1).filter(|piece| piece.len() >= SHORTEST);
    secrets.chain([url]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
