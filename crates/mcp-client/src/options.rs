//! Limits and timeouts of a server.

use std::time::Duration;

/// Settings of a server, independent of its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Tools that may be offered and called; all if there is no list.
    pub allowed_tools: Option<Vec<String>>,
    /// Maximum time until a call is answered.
    pub timeout: Duration,
    /// Maximum time to connect, and to list the tools.
    pub connect_timeout: Duration,
    /// Maximum size in bytes of a result, as sent by the server.
    pub max_result: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            allowed_tools: None,
            timeout: Duration::from_mins(1),
            // A server that knows neither revision's handshake gets ten seconds before the older
            // one is tried.
            connect_timeout: Duration::from_secs(30),
            max_result: 32 << 20,
        }
    }
}

impl ServerOptions {
    /// Returns whether a tool may be used.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let allowed = self.allowed_tools.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|known| known == tool))
    }
}
