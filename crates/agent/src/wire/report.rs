//! What a turn came to that fetched and derived, besides its items.

use cellblock_interpreter::alias::CanonicalDataset;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a turn came to. It stands beside OpenAI's keys, in a response whose turn had tools to fetch with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `answer`, or `best_effort` where something is missing.
    pub outcome: String,
    /// `complete_answer`, `bounded_runtime_budget`, `attempts_exhausted` or `model_failed`.
    pub stop_reason: String,
    /// What is missing. Empty exactly for an answer.
    pub gaps: Vec<ReportedGap>,
    /// The pictures and charts that derivations emitted, the latest last: kind, sha256, url, and what belongs to each kind.
    pub artifacts: Vec<Value>,
    /// Those that were left out since there were more than an answer may carry.
    pub artifacts_left_out: usize,
    /// All that was fetched, and the last result, in one document; null where nothing was fetched.
    pub dataset: Option<CanonicalDataset>,
    /// Model calls that were made.
    pub steps_used: u32,
    /// Derivations that the model asked for, malformed ones included.
    pub derivations: u32,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedGap {
    /// `chart_missing`, `step_budget_exhausted`, `attempts_exhausted` or `model_failed`.
    pub code: String,
    /// What is missing and why, for the user.
    pub message: String,
}
