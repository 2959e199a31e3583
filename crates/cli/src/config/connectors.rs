//! Functions that a configuration gives to code: its connectors, and the servers of tools that are offered to
//! code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cellblock_connector::{
    CommandConnector, ConnectorOptions, ConnectorType, FilesConnector, GivenValue, GivenValues,
    HttpConnector, PythonValues, SecretSource, SqlConnector,
};
use cellblock_interpreter::connector::{Connector, MIN_SECRET_BYTES};

use super::check::Check;
use super::sections::connectors::report;
use super::tool_servers::{SecretError, file, variable};
use super::{ConfigError, LoadedConfig, OfferedServer};

impl LoadedConfig {
    /// The connectors of code. Secrets are read now; nothing is connected yet.
    pub(crate) fn connectors(
        &self,
        servers: &[OfferedServer],
    ) -> Result<Vec<Arc<dyn Connector>>, ConfigError> {
        let mut check = Check::new(&self.tree);
        let mut connectors: Vec<_> = servers.iter().filter_map(OfferedServer::connector).collect();
        for (name, options) in &self.settings.connectors.0 {
            let Some(secrets) = self.secrets(name, options, &mut check) else {
                continue;
            };
            let connector = match options.kind {
                ConnectorType::Http => HttpConnector::new(name, options, &secrets)
                    .map(|connector| Arc::new(connector) as Arc<dyn Connector>),
                ConnectorType::Openapi => {
                    let path = ["connectors", name, "document"];
                    let document = options.document.as_deref().unwrap_or(Path::new(""));
                    match document_text(&self.path(document)) {
                        Ok(text) => HttpConnector::of_document(name, options, &text, &secrets)
                            .map(|connector| Arc::new(connector) as _),
                        Err(problem) => {
                            check.wrong(&path, problem);
                            continue;
                        }
                    }
                }
                ConnectorType::Files => {
                    let root = self.path(options.root.as_deref().unwrap_or(Path::new("")));
                    FilesConnector::new(name, options, root).map(|connector| Arc::new(connector) as _)
                }
                ConnectorType::Command => {
                    let Some(environment) = self.given(name, "env", &options.env, &mut check) else {
                        continue;
                    };
                    CommandConnector::new(name, options, environment, self.folder())
                        .map(|connector| Arc::new(connector) as _)
                }
                ConnectorType::Mcp => {
                    let of = options.server.as_deref().unwrap_or_default();
                    // A missing server is a mistake that is reported when the configuration is read.
                    let Some(server) = servers.iter().find(|server| server.name() == of) else {
                        continue;
                    };
                    let (description, tools) = (&options.description, options.tools.clone());
                    Ok(Arc::new(server.for_code().selected(name, description, tools)) as _)
                }
                ConnectorType::Python => {
                    let environment = self.given(name, "env", &options.env, &mut check);
                    let bound = self.given(name, "bind", &options.bind, &mut check);
                    let (Some(environment), Some(bound)) = (environment, bound) else {
                        continue;
                    };
                    let values = PythonValues { environment, bound };
                    CommandConnector::python(name, options, values, &self.folder(), None)
                        .map(|connector| Arc::new(connector) as _)
                }
                ConnectorType::Sql => {
                    let url = match &options.url {
                        Some(GivenValue::Text(url)) => Some(url.clone()),
                        Some(GivenValue::Secret(source)) => {
                            self.secret(&["connectors", name, "url"], source, &mut check)
                        }
                        None => None,
                    };
                    let Some(url) = url else { continue };
                    SqlConnector::new(name, options, Some(&url), &self.folder())
                        .map(|connector| Arc::new(connector) as _)
                }
            };
            match connector {
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

    /// Reads the secrets of a connector.
    fn secrets(
        &self,
        name: &str,
        options: &ConnectorOptions,
        check: &mut Check<'_>,
    ) -> Option<BTreeMap<String, String>> {
        let before = check.mistakes.len();
        let mut secrets = BTreeMap::new();
        for (secret, source) in &options.secrets {
            let path = ["connectors", name, "secrets", secret];
            if let Some(value) = self.secret(&path, source, check) {
                secrets.insert(secret.clone(), value);
            }
        }
        (check.mistakes.len() == before).then_some(secrets)
    }

    /// Reads the values that a program gets, which are written below a key of its connector.
    fn given(
        &self,
        name: &str,
        key: &str,
        written: &BTreeMap<String, GivenValue>,
        check: &mut Check<'_>,
    ) -> Option<GivenValues> {
        let before = check.mistakes.len();
        let mut given = GivenValues::default();
        for (variable, value) in written {
            let value = match value {
                GivenValue::Text(text) => Some(text.clone()),
                GivenValue::Secret(source) => {
                    let secret = self.secret(&["connectors", name, key, variable], source, check);
                    given.secrets.extend(secret.clone());
                    secret
                }
            };
            given.values.extend(value.map(|value| (variable.clone(), value)));
        }
        (check.mistakes.len() == before).then_some(given)
    }

    /// Reads a secret, which is at this path.
    pub(super) fn secret(
        &self,
        path: &[&str],
        source: &SecretSource,
        check: &mut Check<'_>,
    ) -> Option<String> {
        let read: Result<String, SecretError> = match (&source.env, &source.file) {
            (Some(name), _) => variable(name),
            (None, Some(path)) => file(&self.path(path)),
            (None, None) => return None,
        };
        match read {
            Ok(value) if value.len() < MIN_SECRET_BYTES => {
                let text = format!(
                    "the value is shorter than {MIN_SECRET_BYTES} bytes, so it could not be removed from \
                     answers; use a longer one"
                );
                check.wrong(path, text);
                None
            }
            Ok(value) => Some(value),
            Err(error) => {
                check.failed(path, &error);
                None
            }
        }
    }
}

/// Maximum size of an OpenAPI document in bytes.
const DOCUMENT: u64 = 32 << 20;

/// Reads an OpenAPI document; the error continues a sentence that starts with its key.
fn document_text(path: &Path) -> Result<String, String> {
    let failed = |error| format!("`{}` cannot be read: {error}", path.display());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > DOCUMENT {
        return Err(format!(
            "`{}` has {size} bytes; the maximum is {DOCUMENT}",
            path.display()
        ));
    }
    std::fs::read_to_string(path).map_err(failed)
}
