//! Servers of tools by name, whose tools a model is offered.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_connector::is_secret;
use cellblock_interpreter::connector::check_name;
use cellblock_mcp_client::ServerOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// MCP servers by name. The gateway calls their tools, never a sandbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct McpServers(pub(crate) BTreeMap<String, ServerOptions>);

/// Keys of a server that is a program, and those of one behind a URL.
const OF_PROGRAMS: [&str; 4] = ["command", "env", "env_from", "env_files"];
const OF_URLS: [&str; 8] = [
    "url",
    "url_env",
    "key_env",
    "key_file",
    "headers",
    "headers_from",
    "headers_files",
    "allow_http",
];

impl McpServers {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        for (name, server) in &self.0 {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) {
                check.wrong(
                    &["mcp_servers", name],
                    "the name of a server must have 1 to 32 letters, digits, `_` and `-`",
                );
            }
            if server.offer.to_code()
                && let Err(reason) = check_name(name)
            {
                check.wrong(
                    &["mcp_servers", name],
                    format!("`offer` makes it a name in code, and it {reason}"),
                );
            }
            check_server(server, name, check);
        }
    }
}

/// Whether a key of a server means something.
pub(in crate::config) fn has(server: &ServerOptions, key: &str) -> bool {
    let other = if server.is_remote() {
        &OF_PROGRAMS[..]
    } else {
        &OF_URLS
    };
    !other.contains(&key)
}

fn check_server(server: &ServerOptions, name: &str, check: &mut Check<'_>) {
    let path = |key| ["mcp_servers", name, key];
    match (server.command.is_empty(), server.is_remote()) {
        (true, false) => check.wrong(
            &["mcp_servers", name],
            "missing key `command`, the program and its arguments, such as `[uvx, weather-mcp]`, or \
             `url`, the address of the server",
        ),
        (false, true) => check.wrong(
            &path(if server.url.is_some() { "url" } else { "url_env" }),
            "cannot be combined with `command`: a server is a program or a URL; remove one of the two",
        ),
        _ => {
            for key in OF_PROGRAMS.into_iter().chain(OF_URLS) {
                if !has(server, key) && check.has(&path(key)) {
                    let instead = if server.is_remote() { "url" } else { "command" };
                    check.wrong(&path(key), format!("has no effect with `{instead}`; remove it"));
                }
            }
        }
    }
    check_names(server, name, check);
    check_limits(
        |key| vec!["mcp_servers", name, key],
        (server.timeout, server.connect_timeout, server.max_result),
        check,
    );
}

/// Each name stands once, and none says that its value is a secret where values are shown.
fn check_names(server: &ServerOptions, name: &str, check: &mut Check<'_>) {
    for (shown, from, files, forms) in [
        (
            &server.env,
            &server.env_from,
            &server.env_files,
            ["env", "env_from", "env_files"],
        ),
        (
            &server.headers,
            &server.headers_from,
            &server.headers_files,
            ["headers", "headers_from", "headers_files"],
        ),
    ] {
        for key in shown.keys().filter(|key| is_secret(key)) {
            check.wrong(
                &["mcp_servers", name, forms[0], key],
                format!(
                    "a configuration must not contain secrets; use `{}` with the name of an \
                     environment variable, or `{}` with a file",
                    forms[1], forms[2]
                ),
            );
        }
        for key in from.keys().filter(|key| shown.contains_key(*key)) {
            twice(&["mcp_servers", name, forms[1], key], forms[0], check);
        }
        for key in files
            .keys()
            .filter(|key| shown.contains_key(*key) || from.contains_key(*key))
        {
            let other = if from.contains_key(key) {
                forms[1]
            } else {
                forms[0]
            };
            twice(&["mcp_servers", name, forms[2], key], other, check);
        }
    }
    if server.key_env.is_some() && server.key_file.is_some() {
        twice(&["mcp_servers", name, "key_file"], "key_env", check);
    }
    if server.url.is_some() && server.url_env.is_some() {
        twice(&["mcp_servers", name, "url_env"], "url", check);
    }
    let query = server.url.as_deref().and_then(|url| url.split_once('?'));
    let mut parameters = query.into_iter().flat_map(|(_, query)| query.split('&'));
    if parameters.any(|parameter| is_secret(parameter.split('=').next().unwrap_or_default())) {
        check.wrong(
            &["mcp_servers", name, "url"],
            "a configuration must not contain secrets; use `url_env` with the name of an environment \
             variable that has the address",
        );
    }
}

fn twice(path: &[&str], other: &str, check: &mut Check<'_>) {
    check.wrong(path, format!("also set under `{other}`; remove one of the two"));
}

/// Less than a list of tools needs.
const MIN_RESULT: u64 = 64 << 10;
/// More than the memory of a server should be asked for.
const MAX_RESULT: u64 = 1 << 30;

/// Checks the timeouts of a call and of connecting, and the size of a result; `path` leads to a key.
pub(super) fn check_limits<'a>(
    path: impl Fn(&'a str) -> Vec<&'a str>,
    (timeout, connect_timeout, max_result): (Duration, Duration, u64),
    check: &mut Check<'_>,
) {
    check.positive(&path("timeout"), timeout);
    check.positive(&path("connect_timeout"), connect_timeout);
    if !(MIN_RESULT..=MAX_RESULT).contains(&max_result) {
        check.wrong(&path("max_result"), "must be from 64KiB to 1GiB");
    }
}
