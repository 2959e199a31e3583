//! Turns and tool calls, counted as they end. The gateway describes these metrics and reports them
//! to Prometheus.

use std::time::Instant;

use metrics::{counter, histogram};

use crate::wire::ResponseStatus;
use crate::{ToolReply, ToolServerError};

/// Turns, by the status of their response.
pub const TURNS: &str = "cellblock_turns_total";
/// Calls of servers' tools, by server and outcome.
pub const TOOL_CALLS: &str = "cellblock_tool_calls_total";
/// Durations of tool calls that were not canceled, by server.
pub const TOOL_CALL_SECONDS: &str = "cellblock_tool_call_seconds";

/// Label of all servers that requests name by an address. Configured servers cannot have this name.
const REQUESTED: &str = "(requested)";

/// Counts a turn that has ended.
pub(crate) fn turn_ended(status: ResponseStatus) {
    let status = match status {
        ResponseStatus::Completed => "completed",
        ResponseStatus::Incomplete => "incomplete",
        ResponseStatus::Failed => "failed",
        _ => "other",
    };
    counter!(TURNS, "status" => status).increment(1);
}

/// A call of a server's tool. Dropping it without an end, as when its turn is dropped, counts it as
/// canceled.
#[derive(Debug)]
pub(crate) struct ToolCall {
    server: String,
    outcome: &'static str,
    since: Instant,
}

impl ToolCall {
    /// Starts a call; `server` is one that the operator has configured, `None` one that a request
    /// named by its address.
    pub(crate) fn begin(server: Option<&str>) -> Self {
        Self {
            server: server.unwrap_or(REQUESTED).to_owned(),
            outcome: "cancelled",
            since: Instant::now(),
        }
    }

    /// Records the end of the call.
    pub(crate) fn ended(mut self, reply: &Result<ToolReply, ToolServerError>) {
        self.outcome = match reply {
            Ok(ToolReply::Result(_)) => "completed",
            Ok(ToolReply::Failed(_)) => "failed",
            Err(_) => "error",
        };
        histogram!(TOOL_CALL_SECONDS, "server" => self.server.clone()).record(self.since.elapsed());
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        let server = std::mem::take(&mut self.server);
        counter!(TOOL_CALLS, "server" => server, "outcome" => self.outcome).increment(1);
    }
}
