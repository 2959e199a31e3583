//! What `--json` prints: the types that `docs/reference/run-output.schema.json` is generated from.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_artifact::{ArtifactId, Kind, Store};
use cellblock_interpreter::derivation::Envelope;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::{
    Exceeded, Execution, Finding, Outcome, ProducedFile, Rejection, SandboxReport, SkippedFile,
    State as Variables,
};
use cellblock_sandbox::jail::protection::{Protection, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::sanitize;

/// The last line of stdout of `cellblock run --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RunReport {
    /// One cell was given, and it was run.
    Cell(Box<CellReport>),
    /// The code was a call of the derivation toolset.
    Derivation(Box<DerivationReport>),
    /// Several cells were given.
    Session(SessionReport),
    /// Cellblock itself could not do its work.
    Failure(FailureReport),
}

/// One call of the derivation toolset.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DerivationReport {
    /// What came of the call.
    #[serde(flatten)]
    pub(crate) envelope: Envelope,
    /// The run; null where the call was refused before Python started.
    pub(crate) execution: Option<CellReport>,
}

/// Several cells of one session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionReport {
    /// How the last cell that was run ended.
    pub(crate) outcome: &'static str,
    /// The cells that were run, in order.
    pub(crate) cells: Vec<CellReport>,
    /// How many cells were not run because one before them did not complete.
    pub(crate) cells_not_run: usize,
}

/// One cell.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CellReport {
    /// How it ended: `completed`, `raised`, `interrupted`, `kernel_lost`, `limit_exceeded` or `rejected`.
    pub(crate) outcome: &'static str,
    /// What became of the session's variables: `kept`, `rescued` (they are as they were before the cell, which was killed) or `lost`.
    pub(crate) state: Variables,
    /// What it showed, in order; also what it showed before a failure.
    pub(crate) outputs: Vec<Output>,
    /// Outputs beyond the limit, which were dropped.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) outputs_dropped: u32,
    /// What was written to stdout. Where it is truncated, a line in the middle says how much is left out.
    pub(crate) stdout: String,
    /// What was written to stderr, likewise.
    pub(crate) stderr: String,
    /// Whether a part of stdout is left out.
    pub(crate) stdout_truncated: bool,
    /// Whether a part of stderr is left out.
    pub(crate) stderr_truncated: bool,
    /// How long the cell ran, in milliseconds.
    pub(crate) duration_ms: f64,
    /// Files that it made or changed in `/workspace` and `/tmp/output`.
    pub(crate) files: Vec<ProducedFile>,
    /// Files that could not be collected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skipped_files: Vec<SkippedFile>,
    /// The bytes of outputs and files.
    pub(crate) artifacts: Vec<ArtifactReport>,
    /// What was saved under `--out`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) saved: Vec<PathBuf>,
    /// Where it ran.
    pub(crate) sandbox: SandboxJson,
    /// What it raised, when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RaisedReport>,
    /// The limit that it ran into, when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Exceeded>,
    /// What a model has to know besides: lost variables, limits, and how to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Why it was not run, when it was not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejections: Vec<Rejection>,
    /// What was noticed about its data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
}

/// What a cell raised, in short; the `exception` output has the rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RaisedReport {
    /// The name of the exception's type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Its message.
    pub(crate) message: String,
    /// The line in the user's code.
    pub(crate) line: Option<u32>,
}

/// Stored bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArtifactReport {
    /// The sha256 of the bytes.
    pub(crate) sha256: String,
    /// What they are of.
    pub(crate) kind: Kind,
    /// How many there are.
    pub(crate) bytes: u64,
    /// The file that holds them; it must not be changed.
    pub(crate) path: Option<PathBuf>,
}

/// Where a cell ran, and behind which walls.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SandboxJson {
    /// The backend.
    pub(crate) backend: String,
    /// The image's id.
    pub(crate) image: String,
    /// Every protection by its name.
    pub(crate) protections: BTreeMap<String, ProtectionState>,
}

/// What became of a protection.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum ProtectionState {
    /// In force.
    Active,
    /// This machine lacks it, and the policy allows that.
    Degraded {
        /// Why.
        reason: String,
    },
    /// The policy switched it off.
    Disabled,
}

/// What Cellblock itself could not do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FailureReport {
    /// Always `error`.
    pub(crate) outcome: &'static str,
    /// What went wrong.
    pub(crate) error: ErrorReport,
    /// Cells that were run before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cells: Vec<CellReport>,
}

/// An error of Cellblock's own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorReport {
    /// Who has to act: `bad_request`, `policy`, `capacity`, `backend` or `cancelled`.
    pub(crate) code: &'static str,
    /// What failed, and why.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hints: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl CellReport {
    /// The report of an execution, whose artifacts are in `store`.
    pub(crate) fn new(execution: Execution, store: &Store, saved: Vec<PathBuf>) -> Self {
        let outcome = execution.outcome.name();
        let artifacts = artifacts(&execution, store);
        let error = (execution.outcome == Outcome::Raised)
            .then(|| raised(&execution.outputs))
            .flatten();
        let (limit, rejections) = match execution.outcome {
            Outcome::LimitExceeded(exceeded) => (Some(exceeded), Vec::new()),
            Outcome::Rejected { rejections } => (None, rejections),
            _ => (None, Vec::new()),
        };
        Self {
            outcome,
            state: execution.state,
            outputs: execution.outputs,
            outputs_dropped: execution.outputs_dropped,
            stdout: execution.stdout.text,
            stderr: execution.stderr.text,
            stdout_truncated: execution.stdout.truncated,
            stderr_truncated: execution.stderr.truncated,
            duration_ms: milliseconds(execution.duration),
            files: execution.files,
            skipped_files: execution.skipped_files,
            artifacts,
            saved,
            sandbox: SandboxJson::from(execution.sandbox),
            error,
            limit,
            note: execution.note,
            rejections,
            findings: execution.findings,
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn raised(outputs: &[Output]) -> Option<RaisedReport> {
    outputs.iter().rev().find_map(|output| match output {
        Output::Exception(it) => Some(RaisedReport {
            kind: it.exception.clone(),
            message: it.message.clone(),
            line: it.line,
        }),
        _ => None,
    })
}

/// Each stored object once, in the order in which outputs and files name them.
fn artifacts(execution: &Execution, store: &Store) -> Vec<ArtifactReport> {
    let outputs = execution.outputs.iter().flat_map(Output::artifacts);
    let outputs = outputs.map(|artifact| (artifact.sha256.to_string(), artifact.kind, artifact.bytes));
    let files = execution
        .files
        .iter()
        .map(|file| (file.sha256.clone(), Kind::File, file.bytes));
    let mut reports: Vec<ArtifactReport> = Vec::new();
    for (sha256, kind, bytes) in outputs.chain(files) {
        if reports.iter().any(|report| report.sha256 == sha256) {
            continue;
        }
        let path = sha256
            .parse::<ArtifactId>()
            .ok()
            .and_then(|id| store.local_path(id));
        reports.push(ArtifactReport {
            sha256,
            kind,
            bytes,
            path,
        });
    }
    reports
}

impl From<SandboxReport> for SandboxJson {
    fn from(report: SandboxReport) -> Self {
        let protections = report.protections.0.into_iter().map(protection).collect();
        Self {
            backend: report.backend,
            image: report.image,
            protections,
        }
    }
}

/// A protection's name, and its state as it is printed.
pub(crate) fn protection((protection, state): (Protection, State)) -> (String, ProtectionState) {
    let state = match state {
        State::Active => ProtectionState::Active,
        State::Degraded { reason } => ProtectionState::Degraded { reason },
        State::Disabled => ProtectionState::Disabled,
    };
    (protection.to_string(), state)
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
            code: crate::exit_code::ExitCode::Refused.name(),
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

/// Prints one line of JSON. Whoever reads it may have left, which is no failure of the run.
pub(crate) fn print(report: &impl Serialize) {
    let json = serde_json::to_string(report).unwrap_or_else(|error| {
        serde_json::json!({ "outcome": "error", "error": { "code": "backend", "message": error.to_string(), "hints": [] } })
            .to_string()
    });
    let _ = writeln!(std::io::stdout(), "{}", sanitize::json(&json));
}

/// A path as it stands in a message.
pub(crate) fn path(path: &Path) -> String {
    sanitize::line(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_thousandth_of_a_millisecond() {
        assert_eq!(milliseconds(Duration::from_nanos(1_234_567)).to_string(), "1.235");
    }

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
