//! Connectors by name, whose functions code can call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cellblock_connector::{
    CommandConnector, ConnectorOptions, ConnectorType, FilesConnector, GivenValue, GivenValues,
    HttpConnector, OptionMistake, PythonValues, SecretSource, SqlConnector,
};
use cellblock_interpreter::connector::check_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mcp_servers::{McpServers, is_secret};
use crate::config::Settings;
use crate::config::check::Check;

/// Connectors by name: functions for code in sessions with the toolset `notebook`. The host calls
/// them, never a sandbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Connectors(pub(crate) BTreeMap<String, ConnectorOptions>);

/// Maximum size of a result, which is in memory as a whole.
const MAX_RESULT: u64 = 1 << 30;
/// Stands for a secret while the rest is checked.
const UNREAD: &str = "unread";

impl Connectors {
    pub(in crate::config) fn check(&self, servers: &McpServers, check: &mut Check<'_>) {
        for (name, connector) in &self.0 {
            if let Err(reason) = check_name(name) {
                check.wrong(&["connectors", name], format!("the name {reason}"));
            }
            if servers.0.get(name).is_some_and(|server| server.offer.to_code()) {
                let text = "`mcp_servers` offers a server of this name to code; rename one of the two";
                check.wrong(&["connectors", name], text);
            }
            check_connector(connector, name, servers, check);
        }
    }
}

impl Settings {
    /// Returns whether code can be granted a connector of this name.
    pub(crate) fn has_connector(&self, name: &str) -> bool {
        let server = self.mcp_servers.0.get(name);
        self.connectors.0.contains_key(name) || server.is_some_and(|server| server.offer.to_code())
    }
}

fn check_connector(connector: &ConnectorOptions, name: &str, servers: &McpServers, check: &mut Check<'_>) {
    let path = |key| ["connectors", name, key];
    check.positive(&path("timeout"), connector.timeout);
    if !(1..=MAX_RESULT).contains(&connector.max_result) {
        check.wrong(&path("max_result"), "must be from 1 byte to 1GiB");
    }
    for (key, _) in ConnectorType::KEYS {
        if !connector.kind.has(key) && check.has(&path(key)) {
            let text = format!("has no effect with `type: {}`; remove it", connector.kind.name());
            check.wrong(&path(key), text);
        }
    }
    for function in connector.functions.keys() {
        let path = ["connectors", name, "functions", function];
        check_function(&path, function, check);
        for (key, _) in ConnectorType::FUNCTION_KEYS {
            let path = ["connectors", name, "functions", function, key];
            if !connector.kind.function_has(key) && check.has(&path) {
                let text = format!("has no effect with `type: {}`; remove it", connector.kind.name());
                check.wrong(&path, text);
            }
        }
    }
    let mistakes = match connector.kind {
        ConnectorType::Http => check_http(connector, name, check),
        ConnectorType::Files => {
            for table in connector.tables.keys() {
                check_function(&["connectors", name, "tables", table], table, check);
            }
            FilesConnector::new(name, connector, PathBuf::new()).err()
        }
        ConnectorType::Command => {
            check_program(connector, name, check);
            CommandConnector::new(name, connector, GivenValues::default(), PathBuf::new()).err()
        }
        ConnectorType::Mcp => {
            check_selection(connector, name, servers, check);
            None
        }
        ConnectorType::Python => {
            check_program(connector, name, check);
            for (parameter, value) in &connector.bind {
                check_given(&["connectors", name, "bind", parameter], value, check);
            }
            CommandConnector::python(name, connector, PythonValues::default(), Path::new(""), None).err()
        }
        ConnectorType::Sql => check_sql(connector, name, check),
        ConnectorType::Openapi => {
            check_requests(connector, name, check);
            if connector.document.is_none() {
                let text = "missing key `document`: the OpenAPI document, such as `crm.openapi.json`";
                check.wrong(&["connectors", name], text);
            }
            None
        }
    };
    report(name, mistakes.unwrap_or_default(), check);
}

/// Checks what only requests have.
fn check_requests(connector: &ConnectorOptions, name: &str, check: &mut Check<'_>) {
    if connector.retries.count > 10 {
        check.wrong(&["connectors", name, "retries", "count"], "must be at most 10");
    }
    for (secret, source) in &connector.secrets {
        check_source(&["connectors", name, "secrets", secret], source, check);
    }
    let shared = [("query", &connector.query), ("headers", &connector.headers)];
    for (key, values) in shared {
        for written in values.iter().filter(written_out) {
            check.wrong(&["connectors", name, key, written.0], NO_SECRETS);
        }
    }
}

/// Checks functions that are requests.
fn check_http(connector: &ConnectorOptions, name: &str, check: &mut Check<'_>) -> Option<Vec<OptionMistake>> {
    check_requests(connector, name, check);
    if connector.functions.is_empty() {
        let text = "missing key `functions`: the functions by name, such as `{series: {get: /series}}`";
        check.wrong(&["connectors", name], text);
    }
    for (function, options) in &connector.functions {
        for (key, values) in [("query", &options.query), ("headers", &options.headers)] {
            for written in values.iter().filter(written_out) {
                let path = ["connectors", name, "functions", function, key, written.0];
                check.wrong(&path, NO_SECRETS);
            }
        }
    }
    let unread = connector
        .secrets
        .keys()
        .map(|name| (name.clone(), UNREAD.to_owned()));
    HttpConnector::new(name, connector, &unread.collect()).err()
}

/// Checks what only tools of a server have.
fn check_selection(connector: &ConnectorOptions, name: &str, servers: &McpServers, check: &mut Check<'_>) {
    let Some(server) = &connector.server else {
        let text = "missing key `server`: the server of `mcp_servers` that has the tools";
        check.wrong(&["connectors", name], text);
        return;
    };
    if !servers.0.contains_key(server) {
        let text = format!("`{server}` is not in `mcp_servers`; write the server there");
        check.wrong(&["connectors", name, "server"], text);
    }
    if connector.tools.as_ref().is_some_and(Vec::is_empty) {
        let text = "must have at least one tool; remove the key for all tools of the server";
        check.wrong(&["connectors", name, "tools"], text);
    }
    for key in ["timeout", "max_result"] {
        if check.has(&["connectors", name, key]) {
            let text = format!("has no effect with `type: mcp`; write it in `mcp_servers.{server}`");
            check.wrong(&["connectors", name, key], text);
        }
    }
}

/// Checks what only databases have.
fn check_sql(connector: &ConnectorOptions, name: &str, check: &mut Check<'_>) -> Option<Vec<OptionMistake>> {
    let path = ["connectors", name, "url"];
    if connector.max_rows == 0 {
        check.wrong(&["connectors", name, "max_rows"], "must be at least 1");
    }
    let url = match &connector.url {
        Some(GivenValue::Text(url)) => {
            if has_password(url) {
                let text = "a configuration must not contain a password; read the URL with `{env: NAME}` \
                            or `{file: PATH}`";
                check.wrong(&path, text);
            }
            Some(url.as_str())
        }
        Some(GivenValue::Secret(source)) => {
            check_source(&path, source, check);
            None
        }
        None => None,
    };
    SqlConnector::new(name, connector, url, Path::new("")).err()
}

/// Whether a URL has a password, or could have one.
fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let user = authority.split('/').next().unwrap_or_default().rsplit_once('@');
    user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}

/// Checks what only programs have.
fn check_program(connector: &ConnectorOptions, name: &str, check: &mut Check<'_>) {
    check.positive(&["connectors", name, "start_timeout"], connector.start_timeout);
    for (variable, value) in &connector.env {
        let path = ["connectors", name, "env", variable];
        if variable.is_empty() || variable.contains(['=', '\0']) {
            check.wrong(&path, "the name of a variable must not be empty or have `=`");
        }
        check_given(&path, value, check);
    }
}

/// Checks a value whose name is the last key of its path.
fn check_given(path: &[&str], value: &GivenValue, check: &mut Check<'_>) {
    match value {
        GivenValue::Secret(source) => check_source(path, source, check),
        GivenValue::Text(_) if path.last().is_some_and(|name| is_secret(name)) => {
            let text = "a configuration must not contain secrets; write `{env: NAME}` or `{file: PATH}` \
                        with its source";
            check.wrong(path, text);
        }
        GivenValue::Text(text) if text.contains('\0') => check.wrong(path, "must not have a NUL character"),
        GivenValue::Text(_) => {}
    }
}

pub(in crate::config) fn check_source(path: &[&str], source: &SecretSource, check: &mut Check<'_>) {
    if source.env.is_some() == source.file.is_some() {
        let text = "must have `env`, an environment variable, or `file`, and not both";
        check.wrong(path, text);
    }
}

fn check_function(path: &[&str], function: &str, check: &mut Check<'_>) {
    let mut letters = function.chars();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    if !starts || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        let text = "the name of a function must have letters, digits and `_`, and begin with a letter";
        check.wrong(path, text);
    }
}

/// Reports the mistakes of a connector at their places.
pub(in crate::config) fn report(name: &str, mistakes: Vec<OptionMistake>, check: &mut Check<'_>) {
    for mistake in mistakes {
        let keys = mistake.path.iter().map(String::as_str);
        let path: Vec<_> = ["connectors", name].into_iter().chain(keys).collect();
        check.wrong(&path, mistake.message);
    }
}

const NO_SECRETS: &str =
    "a configuration must not contain secrets; name one in `secrets` and insert it as `{{ secrets.NAME }}`";

/// Whether the name of a value says that it is a secret, and the value is not inserted.
fn written_out((name, value): &(&String, &String)) -> bool {
    is_secret(name) && !value.contains("{{")
}
