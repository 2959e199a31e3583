//! The report of a turn that fetched and derived, in addition to its items.

use cellblock_interpreter::alias::CanonicalDataset;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The report of a turn, next to OpenAI's keys in a response whose turn had tools for fetching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnReport {
    /// `answer`, or `best_effort` if something is missing.
    pub outcome: String,
    /// `complete_answer`, `bounded_runtime_budget`, `attempts_exhausted` or `model_failed`.
    pub stop_reason: String,
    /// Missing parts. Empty exactly for an answer.
    pub gaps: Vec<ReportedGap>,
    /// Emitted pictures and charts, the latest last: kind, sha256, url, and the fields of each kind.
    pub artifacts: Vec<Value>,
    /// Number of artifacts that exceeded the maximum of an answer.
    pub artifacts_left_out: usize,
    /// All fetched data and the last result in one document; null if nothing was fetched.
    pub dataset: Option<CanonicalDataset>,
    /// Number of model calls.
    pub steps_used: u32,
    /// Number of the model's derivations, including malformed ones.
    pub derivations: u32,
}

/// A missing part of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedGap {
    /// `chart_missing`, `step_budget_exhausted`, `attempts_exhausted` or `model_failed`.
    pub code: String,
    /// The missing part and the reason, for the user.
    pub message: String,
}
