//! The outcome of a turn.

use serde::Serialize;

use super::derived::AnswerArtifact;

/// The outcome of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TurnOutcome {
    /// Whether the answer is complete.
    pub(super) outcome: Conclusion,
    /// The model's answer; with gaps, the available data and a section about the gaps.
    pub(super) text: String,
    /// Missing parts, for the user. Empty exactly for a complete answer.
    pub(super) gaps: Vec<Gap>,
    /// Emitted artifacts, each once, the latest last.
    pub(super) artifacts: Vec<AnswerArtifact>,
    /// Number of artifacts that exceeded the maximum of an answer.
    pub(super) artifacts_left_out: usize,
    /// Number of model calls.
    pub(super) steps_used: u32,
    /// Number of the model's derivation calls, including malformed ones.
    pub(super) derivations: u32,
    /// The reason for its end.
    pub(super) stop_reason: StopReason,
}

/// Whether a turn produced the requested answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Conclusion {
    /// It did.
    Answer,
    /// Something is missing.
    BestEffort,
}

/// The reason why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    /// The model answered.
    CompleteAnswer,
    /// The maximum number of steps was reached.
    BoundedRuntimeBudget,
    /// The interpreter was disabled after too many failures, and the model did nothing else.
    AttemptsExhausted,
    /// The model failed.
    ModelFailed,
}

/// A missing part of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Gap {
    /// Kind: `chart_missing`, `step_budget_exhausted`, `attempts_exhausted` or `model_failed`.
    pub(super) code: String,
    /// The missing part and the reason, for the user.
    pub(super) message: String,
}

impl Gap {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}
