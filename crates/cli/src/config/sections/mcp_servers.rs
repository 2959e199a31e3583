//! Servers of tools by name, whose tools a model is offered.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellblock_mcp_client::ServerOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::{Bytes, Time};

/// MCP servers by name. The gateway calls their tools, never a sandbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct McpServers(pub(crate) BTreeMap<String, McpServer>);

/// An MCP server: a local program (`command`) or a URL (`url`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpServer {
    /// The program and its arguments. It starts on first use and ends with the server.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Environment variables, in addition to `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LC_ALL`,
    /// `LC_CTYPE`, `TMPDIR` and `TZ`. Do not put secrets here: `config show` prints them.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Environment variables whose values are read from variables of this process.
    #[serde(default)]
    pub(crate) env_from: BTreeMap<String, String>,
    /// Environment variables whose values are read from files.
    #[serde(default)]
    pub(crate) env_files: BTreeMap<String, PathBuf>,
    /// The server's address, such as `https://mcp.example.com/mcp`.
    #[serde(default)]
    pub(crate) url: Option<String>,
    /// Environment variable with the server's address, if the address contains a secret.
    #[serde(default)]
    pub(crate) url_env: Option<String>,
    /// Environment variable with the server's key, which is sent as `Authorization: Bearer …`.
    #[serde(default)]
    pub(crate) key_env: Option<String>,
    /// File with the server's key.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// Headers of every request. Do not put secrets here: `config show` prints them.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Headers whose values are read from environment variables.
    #[serde(default)]
    pub(crate) headers_from: BTreeMap<String, String>,
    /// Headers whose values are read from files.
    #[serde(default)]
    pub(crate) headers_files: BTreeMap<String, PathBuf>,
    /// Allow sending calls and the key to another machine over unencrypted `http://`.
    #[serde(default)]
    pub(crate) allow_http: bool,
    /// Tools that are offered and may be called; all tools by default.
    #[serde(default)]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Timeout of a call.
    #[serde(default = "timeout")]
    pub(crate) timeout: Time,
    /// Timeout for connecting, and for listing the tools.
    #[serde(default = "connect_timeout")]
    pub(crate) connect_timeout: Time,
    /// Maximum size of a result.
    #[serde(default = "max_result")]
    pub(crate) max_result: Bytes,
    /// When the server's tools are offered.
    #[serde(default)]
    pub(crate) offer: OfferPolicy,
}

/// When tools are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OfferPolicy {
    /// With every request that has the tool `code_interpreter`.
    #[default]
    Always,
    /// With requests that name the server.
    OnRequest,
}

pub(super) fn timeout() -> Time {
    Time(ServerOptions::default().timeout)
}

pub(super) fn connect_timeout() -> Time {
    Time(ServerOptions::default().connect_timeout)
}

pub(super) fn max_result() -> Bytes {
    Bytes(ServerOptions::default().max_result)
}

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
            server.check(name, check);
        }
    }
}

impl McpServer {
    /// Whether it is behind a URL.
    pub(in crate::config) const fn is_remote(&self) -> bool {
        self.url.is_some() || self.url_env.is_some()
    }

    /// Whether a key of a server means something.
    pub(in crate::config) fn has(&self, key: &str) -> bool {
        let other = if self.is_remote() {
            &OF_PROGRAMS[..]
        } else {
            &OF_URLS
        };
        !other.contains(&key)
    }

    fn check(&self, name: &str, check: &mut Check<'_>) {
        let path = |key| ["mcp_servers", name, key];
        match (self.command.is_empty(), self.is_remote()) {
            (true, false) => check.wrong(
                &["mcp_servers", name],
                "missing key `command`, the program and its arguments, such as `[uvx, weather-mcp]`, or `url`, the address of the server",
            ),
            (false, true) => check.wrong(
                &path(if self.url.is_some() { "url" } else { "url_env" }),
                "cannot be combined with `command`: a server is a program or a URL; remove one of the two",
            ),
            _ => {
                for key in OF_PROGRAMS.into_iter().chain(OF_URLS) {
                    if !self.has(key) && check.has(&path(key)) {
                        let instead = if self.is_remote() { "url" } else { "command" };
                        check.wrong(&path(key), format!("has no effect with `{instead}`; remove it"));
                    }
                }
            }
        }
        self.check_names(name, check);
        check.positive(&path("timeout"), self.timeout.0);
        check.positive(&path("connect_timeout"), self.connect_timeout.0);
        check_result(&path("max_result"), self.max_result, check);
    }

    /// Each name stands once, and none says that its value is a secret where values are shown.
    fn check_names(&self, name: &str, check: &mut Check<'_>) {
        for (shown, from, files, forms) in [
            (
                &self.env,
                &self.env_from,
                &self.env_files,
                ["env", "env_from", "env_files"],
            ),
            (
                &self.headers,
                &self.headers_from,
                &self.headers_files,
                ["headers", "headers_from", "headers_files"],
            ),
        ] {
            for key in shown.keys().filter(|key| is_secret(key)) {
                check.wrong(
                    &["mcp_servers", name, forms[0], key],
                    format!(
                        "a configuration must not contain secrets; use `{}` with the name of an environment variable, or `{}` with a file",
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
        if self.key_env.is_some() && self.key_file.is_some() {
            twice(&["mcp_servers", name, "key_file"], "key_env", check);
        }
        if self.url.is_some() && self.url_env.is_some() {
            twice(&["mcp_servers", name, "url_env"], "url", check);
        }
        let query = self.url.as_deref().and_then(|url| url.split_once('?'));
        let mut parameters = query.into_iter().flat_map(|(_, query)| query.split('&'));
        if parameters.any(|parameter| is_secret(parameter.split('=').next().unwrap_or_default())) {
            check.wrong(
                &["mcp_servers", name, "url"],
                "a configuration must not contain secrets; use `url_env` with the name of an environment variable that has the address",
            );
        }
    }
}

fn twice(path: &[&str], other: &str, check: &mut Check<'_>) {
    check.wrong(path, format!("also set under `{other}`; remove one of the two"));
}

/// Less than a list of tools needs.
const MIN_RESULT: u64 = 64 << 10;
/// More than the memory of a server should be asked for.
const MAX_RESULT: u64 = 1 << 30;

pub(super) fn check_result(path: &[&str], size: Bytes, check: &mut Check<'_>) {
    if !(MIN_RESULT..=MAX_RESULT).contains(&size.0) {
        check.wrong(path, "must be from 64KiB to 1GiB");
    }
}

/// Whether a name says that its value is one.
fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "authorization",
        "cookie",
        "credential",
    ];
    words.iter().any(|word| name.contains(word))
}
