//! Metrics and log of cells and commands. Code is never logged, only its sha256.

use std::time::{Duration, Instant};

use metrics::{counter, gauge, histogram};
use sha2::{Digest as _, Sha256};

use crate::error::Result;
use crate::execution::{Execution, Outcome};
use crate::session::runtime::command::{CommandEnd, CommandResult};

/// Target of events that matter for security.
const SECURITY: &str = "cellblock::security";
/// Target of the log line for each cell and command.
const CELLS: &str = "cellblock::cells";

/// A cell or a command that runs. Without an end, as when its session's task was ended, it is an error.
#[derive(Debug)]
pub(super) struct ExecutionCount {
    toolset: &'static str,
    outcome: &'static str,
    took: Option<Duration>,
    /// Of the code, where somebody reads it.
    sha256: Option<String>,
    since: Instant,
}

impl ExecutionCount {
    pub(super) fn begin(toolset: &'static str, code: &[u8]) -> Self {
        gauge!("cellblock_executions_running").increment(1.0);
        let wanted = tracing::enabled!(target: CELLS, tracing::Level::INFO)
            || tracing::enabled!(target: SECURITY, tracing::Level::WARN);
        Self {
            toolset,
            outcome: "error",
            took: None,
            sha256: wanted.then(|| hex(&Sha256::digest(code))),
            since: Instant::now(),
        }
    }

    pub(super) fn cell(mut self, result: &Result<Execution>) {
        let Ok(execution) = result else { return };
        self.outcome = execution.outcome.name();
        self.took = Some(execution.duration);
        if let Outcome::LimitExceeded(exceeded) = &execution.outcome {
            self.over_limit(exceeded.which.describe(), exceeded.limit, exceeded.actual);
        }
    }

    pub(super) fn command(mut self, result: &Result<CommandResult>) {
        let Ok(executed) = result else { return };
        self.outcome = match executed.end {
            CommandEnd::Exited(0) => "completed",
            CommandEnd::Exited(_) | CommandEnd::Signaled(_) => "raised",
            CommandEnd::TimedOut | CommandEnd::Interrupted => "interrupted",
            CommandEnd::Flooded => "limit_exceeded",
        };
        self.took = Some(executed.duration);
    }

    fn over_limit(&self, which: &str, limit: u64, actual: u64) {
        tracing::warn!(
            target: SECURITY,
            event = "limit_exceeded",
            which,
            limit,
            actual,
            code_sha256 = self.sha256
        );
    }
}

impl Drop for ExecutionCount {
    fn drop(&mut self) {
        gauge!("cellblock_executions_running").decrement(1.0);
        let labels = [("toolset", self.toolset), ("outcome", self.outcome)];
        counter!("cellblock_executions_total", &labels).increment(1);
        if let Some(took) = self.took {
            histogram!("cellblock_execution_seconds", "toolset" => self.toolset).record(took);
        }
        tracing::info!(
            target: CELLS,
            toolset = self.toolset,
            outcome = self.outcome,
            milliseconds = self.since.elapsed().as_millis(),
            code_sha256 = self.sha256
        );
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
