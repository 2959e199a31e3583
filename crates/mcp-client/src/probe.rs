//! Events about each call for dashboards: when it started, and how it ended.
//!
//! Three events with the target [`TARGET`] and the field `event`: `mcp_call_start` once per call,
//! then `mcp_call_success` or `mcp_call_failure`, exactly one of them, even if a call is canceled
//! or the host panics.
//!
//! | field | events | meaning |
//! |---|---|---|
//! | `event` | all | the event's name |
//! | `server`, `tool` | all | the called tool |
//! | `arguments_bytes` | start | the size of its arguments |
//! | `result_bytes` | success | the size of the result as JSON |
//! | `tool_failed` | success | whether the tool reported a failure |
//! | `duration_ms` | success, failure | milliseconds since the start |
//! | `stage` | failure | the failed stage: see [`ProbeStage`] |
//! | `reached` | failure | the stage that the call had reached |
//! | `message` | failure | why, on one line, at most 500 characters |

use cellblock_interpreter::watched::{CallWatch, WatchedCall, WatchedFailure};
use tracing::{info, warn};

use super::words;

/// The target of the events.
pub const TARGET: &str = "cellblock::mcp_call";

/// The stage in which a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStage {
    /// The check whether the tool may be called.
    Allowed,
    /// Connecting to the server.
    Connect,
    /// Calling the server.
    Call,
    /// Reading its result.
    Result,
    /// The call was given up: its future was dropped, or the host panicked.
    Cancelled,
}

impl ProbeStage {
    /// Returns its name in the events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Connect => "connect",
            Self::Call => "call",
            Self::Result => "result",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A running call. Dropping it without an end reports that the call was canceled.
#[derive(Debug)]
#[must_use = "dropping it tells that the call was cancelled"]
pub(super) struct ServerProbe(CallWatch<ProbedTool>);

/// The called tool.
#[derive(Debug)]
struct ProbedTool {
    server: String,
    tool: String,
}

impl ServerProbe {
    /// Reports the start of a call.
    pub(super) fn start(server: &str, tool: &str, arguments_bytes: usize) -> Self {
        let (server, tool) = (words::told(server, 100), words::told(tool, 128));
        info!(target: TARGET, event = "mcp_call_start", server, tool, arguments_bytes);
        Self(CallWatch::start(ProbedTool { server, tool }, ProbeStage::Allowed))
    }

    /// Records the stage of the call.
    pub(super) fn reached(&mut self, stage: ProbeStage) {
        self.0.reached(stage);
    }

    /// Reports that the tool responded.
    pub(super) fn succeed(self, result_bytes: usize, tool_failed: bool) {
        self.0.succeed(|call, duration_ms| {
            info!(
                target: TARGET,
                event = "mcp_call_success",
                server = call.server,
                tool = call.tool,
                result_bytes,
                tool_failed,
                duration_ms,
            );
        });
    }

    /// Reports that the call failed in its current stage.
    pub(super) fn fail(self, message: &str) {
        self.0.fail(message);
    }
}

impl WatchedCall for ProbedTool {
    type Stage = ProbeStage;

    const CANCELLED: ProbeStage = ProbeStage::Cancelled;

    fn failed(&self, failure: WatchedFailure<'_, ProbeStage>) {
        warn!(
            target: TARGET,
            event = "mcp_call_failure",
            server = self.server,
            tool = self.tool,
            stage = failure.stage.name(),
            reached = failure.reached.name(),
            duration_ms = failure.duration_ms,
            "{}",
            words::told(failure.message, words::MOST)
        );
    }
}

#[cfg(test)]
mod tests {
    use cellblock_testkit::LogRecords;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the fields of the reported events; a duration is replaced by whether it is one.
    fn told(act: impl FnOnce()) -> Vec<Value> {
        let records = LogRecords::take();
        act();
        let fields = |mut event: Value| {
            assert_eq!(event["target"], TARGET);
            let mut fields = event["fields"].take();
            if let Some(duration) = fields.get_mut("duration_ms") {
                *duration = json!(duration.as_f64().is_some_and(|it| it >= 0.0));
            }
            fields
        };
        records.all().into_iter().map(fields).collect()
    }

    fn started() -> Value {
        json!({"event": "mcp_call_start", "server": "weather", "tool": "get", "arguments_bytes": 17})
    }

    fn failed(stage: &str, reached: &str, message: &str) -> Value {
        json!({
            "event": "mcp_call_failure", "server": "weather", "tool": "get", "stage": stage,
            "reached": reached,
            "duration_ms": true, "message": message,
        })
    }

    #[test]
    fn a_call_reports_its_start_and_one_end() {
        let success = json!({
            "event": "mcp_call_success", "server": "weather", "tool": "get", "result_bytes": 5,
            "tool_failed": false,
            "duration_ms": true,
        });
        let events = told(|| ServerProbe::start("weather", "get", 17).succeed(5, false));
        assert_eq!(events, [started(), success]);
        let events = told(|| {
            let mut probe = ServerProbe::start("wea\nther".replace('\n', "").as_str(), "get", 17);
            probe.reached(ProbeStage::Connect);
            probe.fail("no\nway");
        });
        assert_eq!(events, [started(), failed("connect", "connect", "no way")]);
        let events = told(|| {
            let mut probe = ServerProbe::start("weather", "get", 17);
            probe.reached(ProbeStage::Call);
        });
        assert_eq!(
            events,
            [started(), failed("cancelled", "call", "the call was cancelled")]
        );
    }

    #[test]
    fn a_panic_of_the_host_is_reported() {
        let events = told(|| {
            let panics = || {
                let _probe = ServerProbe::start("weather", "get", 17);
                panic!("on purpose");
            };
            std::panic::catch_unwind(panics).unwrap_err();
        });
        assert_eq!(
            events,
            [started(), failed("cancelled", "allowed", "the host panicked")]
        );
    }
}
