//! Report of a cell for every interface: the JSON of `cellblock run --json` and of the sessions API.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_artifact::{ArtifactId, Kind};
use cellblock_sandbox::backend::Lack;
use cellblock_sandbox::jail::protection::{Protection, ProtectionStatus};
use cellblock_sandbox::limits::NetworkPolicy;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::connector::FetchRecord;
use crate::derivation::{DerivationResult, Envelope};
use crate::execution::{
    Execution, LimitExcess, Outcome, ProducedFile, SandboxReport, SkippedFile, VariablesState as Variables,
};
use crate::finding::Finding;
use crate::lineage::VariableOrigin;
use crate::output::Output;
use crate::rejection::Rejection;
use crate::toolset::ToolResult;

/// One call of the derivation toolset.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DerivationReport {
    /// Result of the call.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The run; null if the call was rejected before Python started.
    pub execution: Option<CellReport>,
}

impl From<DerivationResult> for DerivationReport {
    fn from(derived: DerivationResult) -> Self {
        Self {
            envelope: derived.envelope(),
            execution: derived.execution.map(|it| CellReport::new(it, |_| None)),
        }
    }
}

/// Returns the result of a tool as JSON.
pub fn json(result: ToolResult) -> serde_json::Result<Value> {
    match result {
        ToolResult::Cell { execution, .. } => serde_json::to_value(CellReport::new(*execution, |_| None)),
        ToolResult::Rehearsed { rehearsal, .. } => {
            serde_json::to_value(CellReport::new(rehearsal.execution, |_| None))
        }
        ToolResult::Derived(derived) => serde_json::to_value(DerivationReport::from(*derived)),
        ToolResult::Commands(ran) => serde_json::to_value(ran),
        ToolResult::Json(value) => Ok(value),
    }
}

/// One cell.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CellReport {
    /// Outcome: `completed`, `raised`, `interrupted`, `kernel_lost`, `limit_exceeded` or
    /// `rejected`.
    pub outcome: &'static str,
    /// State of the session's variables: `kept`, `rescued` (they are as before the cell, which was
    /// killed) or `lost`.
    pub state: Variables,
    /// Displayed outputs in order, including those before a failure.
    pub outputs: Vec<Output>,
    /// Number of outputs that exceeded the limit and were dropped.
    #[serde(skip_serializing_if = "is_zero")]
    pub outputs_dropped: u32,
    /// Output to stdout. If it is truncated, a line in the middle says how much is omitted.
    pub stdout: String,
    /// Output to stderr, truncated in the same way.
    pub stderr: String,
    /// Whether part of stdout is omitted.
    pub stdout_truncated: bool,
    /// Whether part of stderr is omitted.
    pub stderr_truncated: bool,
    /// Duration of the cell in milliseconds.
    pub duration_ms: f64,
    /// Files that it created or changed in `/workspace` and `/tmp/output`.
    pub files: Vec<ProducedFile>,
    /// Files that could not be collected, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_files: Vec<SkippedFile>,
    /// The bytes of outputs and files, and fetched tables.
    pub artifacts: Vec<ArtifactReport>,
    /// Files saved under `--out`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<PathBuf>,
    /// The sandbox that it ran in.
    pub sandbox: SandboxJson,
    /// The exception that it raised, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RaisedReport>,
    /// The limit that it exceeded, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitExcess>,
    /// A note for the model: lost variables, limits, and how to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reasons that the cell was rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<Rejection>,
    /// Findings about its data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Fetches from connectors, in the order of its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetches: Vec<FetchRecord>,
    /// Number of calls of connectors beyond the 200 that `fetches` lists.
    #[serde(skip_serializing_if = "is_zero")]
    pub fetches_dropped: u32,
    /// Origins of the variables that it bound or changed, if it has a producer and completed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, VariableOrigin>,
}

/// Summary of the exception that a cell raised; the `exception` output has the details.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RaisedReport {
    /// The name of the exception's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The line in the user's code.
    pub line: Option<u32>,
}

/// Stored bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactReport {
    /// The sha256 of the bytes.
    pub sha256: String,
    /// Kind of the artifact.
    pub kind: Kind,
    /// Number of bytes.
    pub bytes: u64,
    /// File with the bytes; it must not be changed.
    pub path: Option<PathBuf>,
}

/// The sandbox of a cell and its protections.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SandboxJson {
    /// The backend.
    pub backend: String,
    /// Wall around the sandbox in addition to the host's kernel, such as `gVisor 20240729, platform systrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<String>,
    /// Features that it lacks compared with the sandboxes of the process backend.
    #[serde(skip_serializing_if = "<[Lack]>::is_empty")]
    pub lacks: &'static [Lack],
    /// The image's id.
    pub image: String,
    /// The network that code can use, `loopback` or `egress`; missing if there is none.
    #[serde(skip_serializing_if = "NetworkPolicy::is_none")]
    #[schemars(with = "Option<String>")]
    pub network: NetworkPolicy,
    /// Every protection by its name.
    pub protections: BTreeMap<String, ProtectionState>,
}

/// State of a protection.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProtectionState {
    /// Active.
    Active,
    /// Unavailable on this machine, which the policy allows.
    Degraded {
        /// Reason.
        reason: String,
    },
    /// Disabled by the policy.
    Disabled,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl CellReport {
    /// Returns the report of an execution. `place` returns the host's file of an artifact if the
    /// reader may know it.
    pub fn new(execution: Execution, place: impl Fn(ArtifactId) -> Option<PathBuf>) -> Self {
        let outcome = execution.outcome.name();
        let artifacts = artifacts(&execution, place);
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
            saved: Vec::new(),
            sandbox: SandboxJson::from(execution.sandbox),
            error,
            limit,
            note: execution.note,
            rejections,
            findings: execution.findings,
            fetches: execution.fetches,
            fetches_dropped: execution.fetches_dropped,
            origins: execution.origins,
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

/// Each stored object once, in the order in which outputs, files and fetches name them.
fn artifacts(execution: &Execution, place: impl Fn(ArtifactId) -> Option<PathBuf>) -> Vec<ArtifactReport> {
    let outputs = execution.outputs.iter().flat_map(Output::artifacts);
    let outputs = outputs.map(|artifact| (artifact.sha256.to_string(), artifact.kind, artifact.bytes));
    let files = execution
        .files
        .iter()
        .map(|file| (file.sha256.clone(), Kind::File, file.bytes));
    let mut reports: Vec<ArtifactReport> = Vec::new();
    let fetched = execution
        .fetches
        .iter()
        .filter_map(|fetch| fetch.artifact.as_ref());
    let fetched = fetched.map(|artifact| (artifact.sha256.to_string(), artifact.kind, artifact.bytes));
    for (sha256, kind, bytes) in outputs.chain(files).chain(fetched) {
        if reports.iter().any(|report| report.sha256 == sha256) {
            continue;
        }
        let path = sha256.parse::<ArtifactId>().ok().and_then(&place);
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
            wall: report.wall,
            lacks: report.lacks,
            image: report.image,
            network: report.network,
            protections,
        }
    }
}

/// A protection's name, and its state as it is printed.
fn protection((protection, state): (Protection, ProtectionStatus)) -> (String, ProtectionState) {
    let state = match state {
        ProtectionStatus::Active => ProtectionState::Active,
        ProtectionStatus::Degraded { reason } => ProtectionState::Degraded { reason },
        ProtectionStatus::Disabled => ProtectionState::Disabled,
    };
    (protection.to_string(), state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_thousandth_of_a_millisecond() {
        assert_eq!(milliseconds(Duration::from_nanos(1_234_567)).to_string(), "1.235");
    }
}
