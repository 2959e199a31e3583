//! How much of a server is used, and how long it is waited for.

use std::time::Duration;

/// What holds for a server, however it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The tools that may be offered and called; all if there is no list.
    pub allowed_tools: Option<Vec<String>>,
    /// Until a call is answered.
    pub timeout: Duration,
    /// Until the server is connected to, and until it has listed its tools.
    pub connect_timeout: Duration,
    /// Bytes of a result, as the server sends it.
    pub max_result: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            allowed_tools: None,
            timeout: Duration::from_mins(1),
            // A server that knows neither revision's beginning is waited for ten seconds before it is asked the older way.
            connect_timeout: Duration::from_secs(30),
            max_result: 32 << 20,
        }
    }
}

impl ServerOptions {
    /// Whether a tool may be used.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let allowed = self.allowed_tools.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|known| known == tool))
    }
}
