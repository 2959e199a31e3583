//! Settings of servers, as an operator writes them: of those that it names, and of those that requests name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::http::UrlPattern;

/// An MCP server: a local program (`command`) or a URL (`url`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "McpServer")]
#[serde(default, deny_unknown_fields)]
pub struct ServerOptions {
    /// The program and its arguments. It starts on first use and ends with the server.
    pub command: Vec<String>,
    /// Environment variables, in addition to `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LC_ALL`,
    /// `LC_CTYPE`, `TMPDIR` and `TZ`. Do not put secrets here: `config show` prints them.
    pub env: BTreeMap<String, String>,
    /// Environment variables whose values are read from variables of this process.
    pub env_from: BTreeMap<String, String>,
    /// Environment variables whose values are read from files.
    pub env_files: BTreeMap<String, PathBuf>,
    /// The server's address, such as `https://mcp.example.com/mcp`.
    pub url: Option<String>,
    /// Environment variable with the server's address, if the address contains a secret.
    pub url_env: Option<String>,
    /// Environment variable with the server's key, which is sent as `Authorization: Bearer …`.
    pub key_env: Option<String>,
    /// File with the server's key.
    pub key_file: Option<PathBuf>,
    /// Headers of every request. Do not put secrets here: `config show` prints them.
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are read from environment variables.
    pub headers_from: BTreeMap<String, String>,
    /// Headers whose values are read from files.
    pub headers_files: BTreeMap<String, PathBuf>,
    /// Allow sending calls and the key to another machine over unencrypted `http://`.
    pub allow_http: bool,
    /// Tools that are offered and may be called; all tools by default.
    pub allowed_tools: Option<Vec<String>>,
    /// Timeout of a call.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// Timeout for connecting, and for listing the tools.
    #[serde(with = "Time")]
    pub connect_timeout: Duration,
    /// Maximum size of a result.
    #[serde(with = "Size")]
    pub max_result: u64,
    /// Callers of the server's tools: the model, code, or both.
    pub offer: OfferPolicy,
}

/// Callers of the tools of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferPolicy {
    /// The model, in every request that has the tool `code_interpreter`.
    #[default]
    #[serde(alias = "always")]
    Model,
    /// The model, in requests that name the server.
    OnRequest,
    /// Code in sessions with the toolset `notebook`: each tool is a function, such as
    /// `weather.get_forecast(city="Kyiv")`, and its results do not enter the model's context.
    Code,
    /// The model, as with `model`, and code, as with `code`.
    Both,
}

impl OfferPolicy {
    /// Returns whether code may call the tools.
    pub const fn to_code(self) -> bool {
        matches!(self, Self::Code | Self::Both)
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            env_from: BTreeMap::new(),
            env_files: BTreeMap::new(),
            url: None,
            url_env: None,
            key_env: None,
            key_file: None,
            headers: BTreeMap::new(),
            headers_from: BTreeMap::new(),
            headers_files: BTreeMap::new(),
            allow_http: false,
            allowed_tools: None,
            timeout: Duration::from_mins(1),
            // A server that knows neither revision's handshake gets ten seconds before the older
            // one is tried.
            connect_timeout: Duration::from_secs(30),
            max_result: 32 << 20,
            offer: OfferPolicy::default(),
        }
    }
}

impl ServerOptions {
    /// Returns whether the server is behind a URL.
    pub const fn is_remote(&self) -> bool {
        self.url.is_some() || self.url_env.is_some()
    }

    /// Returns whether a tool may be used.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let allowed = self.allowed_tools.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|known| known == tool))
    }
}

/// MCP servers that a request names by URL, as with OpenAI's tool `mcp`. None are allowed by
/// default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "McpRequests")]
#[serde(default, deny_unknown_fields)]
pub struct RequestedServerOptions {
    /// URLs that a request may name. A URL such as `https://mcp.example.com/` allows everything
    /// below its path; `https://*.example.com/` allows every subdomain.
    pub allowed_urls: Vec<String>,
    /// Allow sending calls and a request's headers to another machine over unencrypted `http://`.
    pub allow_http: bool,
    /// Timeout of a call.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// Timeout for connecting to a server, and for listing its tools.
    #[serde(with = "Time")]
    pub connect_timeout: Duration,
    /// Maximum size of a result.
    #[serde(with = "Size")]
    pub max_result: u64,
}

impl Default for RequestedServerOptions {
    fn default() -> Self {
        let server = ServerOptions::default();
        Self {
            allowed_urls: Vec::new(),
            allow_http: false,
            timeout: server.timeout,
            connect_timeout: server.connect_timeout,
            max_result: server.max_result,
        }
    }
}

impl RequestedServerOptions {
    /// Returns the patterns of the allowed URLs; an invalid one allows nothing.
    pub(super) fn patterns(&self) -> Vec<UrlPattern> {
        let read = |text: &String| UrlPattern::new(text, self.allow_http).ok();
        self.allowed_urls.iter().filter_map(read).collect()
    }

    /// Returns the settings of each server.
    pub(super) fn of_server(&self) -> ServerOptions {
        ServerOptions {
            allow_http: self.allow_http,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            max_result: self.max_result,
            ..ServerOptions::default()
        }
    }
}
