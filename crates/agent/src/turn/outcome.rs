//! How a turn ended.

use serde::Serialize;

use super::derived::Emitted;

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TurnOutcome {
    /// Whether it is whole.
    pub(super) outcome: Conclusion,
    /// The model's answer; with gaps, what there is and a section that tells them.
    pub(super) text: String,
    /// What is missing, for the user to be told. Empty exactly for a whole answer.
    pub(super) gaps: Vec<Gap>,
    /// What was emitted, each once, the latest last.
    pub(super) artifacts: Vec<Emitted>,
    /// Artifacts that were left out since there were more than an answer may carry.
    pub(super) artifacts_left_out: usize,
    /// Model calls that were made.
    pub(super) steps_used: u32,
    /// Derivation calls that the model made, malformed ones included.
    pub(super) derivations: u32,
    /// Why it ended.
    pub(super) stop_reason: StopReason,
}

/// Whether a turn gave what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Conclusion {
    /// It did.
    Answer,
    /// Something is missing.
    BestEffort,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    /// The model answered.
    CompleteAnswer,
    /// The steps were used up.
    BoundedRuntimeBudget,
    /// The interpreter was taken away, and the model wanted nothing else.
    AttemptsExhausted,
    /// The model took no step.
    ModelFailed,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Gap {
    /// What kind it is: `chart_missing`, `step_budget_exhausted`, `attempts_exhausted` or `model_failed`.
    pub(super) code: String,
    /// What is missing and why, for the user to be told.
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
