//! Servers of tools that a request names.

use cellblock_mcp_client::UrlPattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mcp_servers::{check_result, connect_timeout, max_result, timeout};
use crate::config::check::Check;
use cellblock_settings::{Bytes, Time};

/// MCP servers that a request names by URL, as with OpenAI's tool `mcp`. None are allowed by
/// default.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpRequests {
    /// URLs that a request may name. A URL such as `https://mcp.example.com/` allows everything
    /// below its path; `https://*.example.com/` allows every subdomain.
    pub(crate) allowed_urls: Vec<String>,
    /// Allow sending calls and a request's headers to another machine over unencrypted `http://`.
    pub(crate) allow_http: bool,
    /// Timeout of a call.
    pub(crate) timeout: Time,
    /// Timeout for connecting to a server, and for listing its tools.
    pub(crate) connect_timeout: Time,
    /// Maximum size of a result.
    pub(crate) max_result: Bytes,
}

impl Default for McpRequests {
    fn default() -> Self {
        Self {
            allowed_urls: Vec::new(),
            allow_http: false,
            timeout: timeout(),
            connect_timeout: connect_timeout(),
            max_result: max_result(),
        }
    }
}

impl McpRequests {
    /// The patterns, which were checked.
    pub(in crate::config) fn patterns(&self) -> Vec<UrlPattern> {
        let read = |text: &String| UrlPattern::new(text, self.allow_http).ok();
        self.allowed_urls.iter().filter_map(read).collect()
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        for (place, text) in self.allowed_urls.iter().enumerate() {
            if let Err(error) = UrlPattern::new(text, self.allow_http) {
                check.failed(&["mcp_requests", "allowed_urls", &place.to_string()], &error);
            }
        }
        check.positive(&["mcp_requests", "timeout"], self.timeout.0);
        check.positive(&["mcp_requests", "connect_timeout"], self.connect_timeout.0);
        check_result(&["mcp_requests", "max_result"], self.max_result, check);
    }
}
