//! Calls of servers' tools, counted as they end.

use std::time::Instant;

use cellblock_interpreter::{ToolReply, ToolServerError};
use metrics::{counter, histogram};

use super::names;

/// The label of all servers that requests name by an address. No server that is set up can be called this.
const REQUESTED: &str = "(requested)";

/// A call of a server's tool. Without an end, as when its turn was given up, it was cancelled.
#[derive(Debug)]
pub(crate) struct ToolCall {
    server: String,
    outcome: &'static str,
    since: Instant,
}

impl ToolCall {
    /// Begins a call; `server` is one that the operator has set up, `None` one that a request named by its address.
    pub(crate) fn begin(server: Option<&str>) -> Self {
        Self {
            server: server.unwrap_or(REQUESTED).to_owned(),
            outcome: "cancelled",
            since: Instant::now(),
        }
    }

    /// It has ended.
    pub(crate) fn ended(mut self, reply: &Result<ToolReply, ToolServerError>) {
        self.outcome = match reply {
            Ok(ToolReply::Result(_)) => "completed",
            Ok(ToolReply::Failed(_)) => "failed",
            Err(_) => "error",
        };
        histogram!(names::TOOL_CALL_SECONDS, "server" => self.server.clone()).record(self.since.elapsed());
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        let server = std::mem::take(&mut self.server);
        counter!(names::TOOL_CALLS, "server" => server, "outcome" => self.outcome).increment(1);
    }
}
