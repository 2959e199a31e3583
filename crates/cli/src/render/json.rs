//! Output of `--json`: the types that `docs/reference/run-output.schema.json` is generated from.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use cellblock_artifact::Store;
use cellblock_interpreter::Execution;
use cellblock_interpreter::lineage::VariableOrigin;
use cellblock_interpreter::report::{CellReport, DerivationReport};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{self, Error};
use crate::exit_code::ExitCode;
use crate::sanitize;

/// The last line of stdout of `cellblock run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunOutput {
    /// Report of the run.
    #[serde(flatten)]
    pub(crate) report: RunReport,
    /// Whether the sandbox was that of a warm host; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) warm: bool,
}

/// Report of `cellblock run`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RunReport {
    /// One cell was given and ran.
    Cell(Box<CellReport>),
    /// The code was a call of the derivation toolset.
    Derivation(Box<DerivationReport>),
    /// Several cells were given.
    Session(SessionReport),
    /// Cellblock itself failed.
    Failure(FailureReport),
}

/// Several cells of one session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionReport {
    /// Outcome of the last cell that ran.
    pub(crate) outcome: &'static str,
    /// The cells that ran, in order.
    pub(crate) cells: Vec<CellReport>,
    /// Number of cells that did not run because an earlier one did not complete.
    pub(crate) cells_not_run: usize,
    /// Origins of the variables that the files made, as they are in the end; the producer is the file's path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) origins: BTreeMap<String, VariableOrigin>,
}

/// An error of Cellblock itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FailureReport {
    /// Always `error`.
    pub(crate) outcome: &'static str,
    /// The error.
    pub(crate) error: ErrorReport,
    /// Cells that ran before the error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cells: Vec<CellReport>,
}

/// An error of Cellblock's own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorReport {
    /// Category: `bad_request`, `policy`, `capacity`, `backend` or `cancelled`.
    pub(crate) code: &'static str,
    /// Action that failed, and the reason.
    pub(crate) message: String,
    /// Suggested fix.
    pub(crate) hints: Vec<String>,
}

/// The report of an execution, whose artifacts are in `store`, and of what was saved of it.
pub(crate) fn cell(execution: Execution, store: &Store, saved: Vec<PathBuf>) -> CellReport {
    CellReport {
        saved,
        ..CellReport::new(execution, |id| store.local_path(id))
    }
}

impl FailureReport {
    /// The report of an error.
    pub(crate) fn new(error: &Error, cells: Vec<CellReport>) -> Self {
        let error = ErrorReport {
            code: error.exit_code().name(),
            message: error.chain().join(": "),
            hints: error.hints(),
        };
        Self {
            outcome: "error",
            error,
            cells,
        }
    }

    /// The report of a command line that cannot be understood.
    pub(crate) fn usage(message: String) -> Self {
        let hints = vec!["`cellblock --help` and `cellblock run --help` list the options".to_owned()];
        let error = ErrorReport {
            code: ExitCode::Refused.name(),
            message,
            hints,
        };
        Self {
            outcome: "error",
            error,
            cells: Vec::new(),
        }
    }
}

/// Prints one line of JSON. If its reader has closed the pipe, the run has not failed.
pub(crate) fn print(report: &impl Serialize) {
    let json = serde_json::to_string(report).unwrap_or_else(|error| {
        serde_json::json!({ "outcome": "error", "error": { "code": "backend",
            "message": error.to_string(), "hints": [] } })
        .to_string()
    });
    let _ = writeln!(std::io::stdout(), "{}", sanitize::json(&json));
}

/// Reports why a command failed, to a program as JSON or to a person, and says how it ended.
pub(crate) fn failed(error: &Error, json: bool) -> ExitCode {
    if json {
        print(&FailureReport::new(error, Vec::new()));
    } else {
        error::tell(error);
    }
    error.exit_code()
}

/// A path, as it appears in a message.
pub(crate) fn path(path: &Path) -> String {
    sanitize::line(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_code_a_message_with_causes_and_hints() {
        let error = Error::user_file("read", "x.py")(std::io::ErrorKind::NotFound.into());
        let json = serde_json::to_value(FailureReport::new(&error, Vec::new())).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "outcome": "error",
                "error": { "code": "bad_request", "message": "read `x.py`: entity not found", "hints": [] }
            })
        );
    }
}
