//! Result of a call.

use std::time::Duration;

use cellblock_artifact::{ArtifactEnvelope, ArtifactId};
use cellblock_protocol::text::counted;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::execution::{Execution, Outcome};
use crate::finding::Finding;
use crate::output::Output;
use crate::rejection::Rejection;
use crate::render::redraw::redrawn;

/// Result of a call.
#[derive(Clone, Debug)]
pub struct DerivationResult {
    /// Purpose of the call.
    pub intent: String,
    /// Outcome of the call. A cell that ran and broke its contract is rejected, too.
    pub outcome: Outcome,
    /// The run; none where the call was refused before Python started.
    pub execution: Option<Execution>,
    /// Last value that was passed to `set_result`. A call that did not complete has none.
    pub result: Option<Value>,
    /// Artifacts that it emitted. A call that did not complete has none.
    pub artifacts: Vec<ArtifactEnvelope>,
    /// Findings about its data and its lines.
    pub findings: Vec<Finding>,
    /// The tool results that it declared.
    pub inputs: Vec<BoundInput>,
    /// The alias under which its result can be derived from further.
    pub output_alias: Option<String>,
    /// Number of calls that may still fail.
    pub attempts_left: u32,
}

impl DerivationResult {
    /// Whether the call completed and satisfied its contract.
    pub const fn ok(&self) -> bool {
        matches!(self.outcome, Outcome::Completed)
    }

    /// Returns the reasons that it was refused.
    pub fn rejections(&self) -> &[Rejection] {
        match &self.outcome {
            Outcome::Rejected { rejections } => rejections,
            _ => &[],
        }
    }

    /// Returns the duration of the cell.
    pub fn duration(&self) -> Duration {
        self.execution
            .as_ref()
            .map(|execution| execution.duration)
            .unwrap_or_default()
    }

    /// Returns the envelope that faces print and send.
    pub fn envelope(&self) -> Envelope {
        let stdout = self.execution.as_ref().map(|it| redrawn(&it.stdout.text));
        let stderr = self
            .execution
            .as_ref()
            .map(|it| redrawn(&it.stderr.text).into_owned());
        Envelope {
            ok: self.ok(),
            outcome: self.outcome.name(),
            intent: self.intent.clone(),
            result: self.result.clone(),
            artifacts: self.artifacts.clone(),
            findings: self.findings.clone(),
            inputs: self.inputs.clone(),
            stdout: stdout.unwrap_or_default().lines().map(str::to_owned).collect(),
            stderr: stderr.unwrap_or_default(),
            duration_ms: self.duration().as_secs_f64() * 1000.0,
            output_alias: self.output_alias.clone(),
            error: self.error(),
            rejections: self.rejections().to_vec(),
            attempts_left: self.attempts_left,
            note: self.execution.as_ref().and_then(|it| it.note.clone()),
            earlier: EarlierNames {
                data_quality_hints: self.hints(),
                input_projection_diagnostics: self.inputs.clone(),
                duration_ms: self.duration().as_secs_f64() * 1000.0,
                output_alias: self.output_alias.clone(),
                attempts_left: self.attempts_left,
            },
        }
    }

    /// Returns the findings of the cell's helpers, without those about its lines.
    fn hints(&self) -> Vec<Finding> {
        let of_data = |finding: &&Finding| finding.code != super::LOW_COVERAGE;
        self.findings.iter().filter(of_data).cloned().collect()
    }

    /// Returns the reason that it is not ok, and what to do.
    pub fn error(&self) -> Option<CallFailure> {
        let (what, line) = self.failure()?;
        Some(CallFailure {
            code: self.outcome.name(),
            message: format!("{what}. {}", self.attempts()),
            line,
        })
    }

    /// Returns the reason that it is not ok, and the line of it.
    pub fn failure(&self) -> Option<(String, Option<u32>)> {
        Some(match &self.outcome {
            Outcome::Completed => return None,
            Outcome::Rejected { rejections } => {
                let messages: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
                (messages.join("; "), None)
            }
            Outcome::Raised => self.raised(),
            Outcome::Interrupted | Outcome::KernelLost { .. } | Outcome::LimitExceeded(_) => {
                let note = self.execution.as_ref().and_then(|it| it.note.clone());
                (note.unwrap_or_else(|| self.outcome.name().to_owned()), None)
            }
        })
    }

    fn raised(&self) -> (String, Option<u32>) {
        let last = self.execution.as_ref().and_then(|it| it.outputs.last());
        match last {
            Some(Output::Exception(raised)) => {
                (format!("{}: {}", raised.exception, raised.message), raised.line)
            }
            _ => ("the cell raised an exception".to_owned(), None),
        }
    }

    fn attempts(&self) -> String {
        match self.attempts_left {
            0 => "No attempts are left: answer without this tool, and say what is missing".to_owned(),
            left => {
                let verb = if left == 1 { "is" } else { "are" };
                format!(
                    "Repair the call and try again: {} {verb} left",
                    counted(left, "attempt")
                )
            }
        }
    }
}

/// Result of a call, as faces print and send it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Envelope {
    /// Whether the call completed and satisfied its contract.
    pub ok: bool,
    /// Outcome: `completed`, `raised`, `interrupted`, `kernel_lost`, `limit_exceeded` or
    /// `rejected`.
    pub outcome: &'static str,
    /// Purpose of the call.
    pub intent: String,
    /// The result; null if there is none.
    pub result: Option<Value>,
    /// The images and charts that it emitted, in order.
    pub artifacts: Vec<ArtifactEnvelope>,
    /// All findings.
    pub findings: Vec<Finding>,
    /// The declared results that it derived from.
    pub inputs: Vec<BoundInput>,
    /// Lines of stdout.
    pub stdout: Vec<String>,
    /// Output to stderr.
    pub stderr: String,
    /// Duration of the cell in milliseconds.
    pub duration_ms: f64,
    /// The alias of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_alias: Option<String>,
    /// Reason that the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallFailure>,
    /// The reasons for the rejection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<Rejection>,
    /// Number of calls that may still fail.
    pub attempts_left: u32,
    /// A note for the model: lost variables, limits, and how to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Earlier names of some fields.
    #[serde(flatten)]
    pub earlier: EarlierNames,
}

/// Names that fields of an [`Envelope`] had before. The next release leaves them out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierNames {
    /// Deprecated: the `findings` except `low_coverage`.
    pub data_quality_hints: Vec<Finding>,
    /// Deprecated: `inputs`.
    pub input_projection_diagnostics: Vec<BoundInput>,
    /// Deprecated: `duration_ms`.
    pub duration_ms: f64,
    /// Deprecated: `output_alias`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_alias: Option<String>,
    /// Deprecated: `attempts_left`.
    pub attempts_left: u32,
}

/// A complete tool result that was bound for a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoundInput {
    /// The name in the code.
    pub name: String,
    /// The alias.
    pub alias: String,
    /// Number of recorded bytes.
    pub bytes: u64,
    /// Number of rows, if it is a table or a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The sha256 of its bytes.
    pub sha256: ArtifactId,
}

/// Reason that a call failed, for a model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallFailure {
    /// Outcome.
    pub code: &'static str,
    /// Description of the failure, how to fix it, and the number of attempts that are left.
    pub message: String,
    /// The line of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}
