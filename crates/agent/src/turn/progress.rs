//! The progress of a turn, and the gaps at its end.

use cellblock_interpreter::alias::AliasStore;
use cellblock_interpreter::contract::ATTEMPTS_EXHAUSTED;
use cellblock_interpreter::execution::Rejection;

use super::best_effort;
use super::derived::{AnswerArtifact, DerivedFacts};
use super::outcome::{Conclusion, Gap, StopReason, TurnOutcome};
use super::plan::{Budget, ChartIntent, Plan};

/// Maximum number of derived texts that a best effort repeats.
const DERIVED_TEXTS: usize = 3;

const REMINDER: &str = "the user asked for a chart and none was emitted: make it with code_interpreter or \
                        render_chart, or answer again and say why it cannot be made";

/// The progress so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    plan: Plan,
    budget: Budget,
    steps: u32,
    derivations: u32,
    exhausted: bool,
    /// Whether a missing chart was requested again.
    reminded: bool,
    fetched: bool,
    artifacts: Vec<AnswerArtifact>,
    derived: Vec<String>,
    /// The latest mistake of a call that was to derive or draw.
    mistake: Option<String>,
}

/// The reason why a turn's steps ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// The model answered.
    Answer(String),
    /// The maximum number of steps was reached.
    Steps,
    /// The interpreter was disabled after too many failures, and the model did nothing else.
    Attempts,
    /// The model failed, for this reason.
    Model(String),
}

impl Progress {
    /// Creates the initial progress of a turn with this plan.
    pub(super) fn new(plan: Plan, budget: Budget) -> Self {
        Self {
            plan,
            budget,
            ..Self::default()
        }
    }

    /// Returns the number of model calls that are left.
    pub(super) const fn steps_left(&self) -> u32 {
        self.budget.allowed(self.plan).saturating_sub(self.steps)
    }

    /// Counts a model call.
    pub(super) const fn step(&mut self) {
        self.steps += 1;
    }

    /// Records that a tool's result was kept.
    pub(super) const fn fetched(&mut self) {
        self.fetched = true;
    }

    /// Returns whether derivations failed too often, so that no more are run.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// Counts a derivation call, including malformed ones.
    pub(super) const fn attempted(&mut self, derived: &DerivedFacts) {
        self.derivations += 1;
        self.exhausted = !derived.ok && derived.attempts_left == 0;
    }

    /// Records the result of a call of the toolset.
    pub(super) fn derived(&mut self, derived: &DerivedFacts) {
        if derived.ok {
            self.mistake = None;
            self.derived.push(derived.text.clone());
            for artifact in &derived.artifacts {
                self.artifacts.retain(|earlier| earlier.sha256 != artifact.sha256);
                self.artifacts.push(artifact.clone());
            }
        } else {
            // Calls after the last attempt were not run, so the mistakes before them still count.
            let over = |it: &Rejection| it.code == ATTEMPTS_EXHAUSTED;
            if self.mistake.is_none() || !derived.rejections.iter().any(over) {
                let unknown = || "the code did not run to its end".to_owned();
                let first = || derived.rejections.first().map(|it| it.message.clone());
                self.mistake = Some(derived.failure.clone().or_else(first).unwrap_or_else(unknown));
            }
        }
    }

    /// Records that a call could not be run because of an internal error.
    pub(super) fn broke(&mut self) {
        self.mistake = Some("the interpreter itself failed".to_owned());
    }

    /// Returns a reminder for a model that answered without a requested chart, if there are steps
    /// left to make one. It is sent once: a second answer without a chart is accepted.
    pub(super) fn reminder(&mut self) -> Option<&'static str> {
        let possible = self.steps_left() > 1 && !self.exhausted;
        if !self.lacks_chart() || !possible || self.reminded {
            return None;
        }
        self.reminded = true;
        Some(REMINDER)
    }

    fn lacks_chart(&self) -> bool {
        self.plan.chart_intent == ChartIntent::Explicit && self.artifacts.is_empty()
    }

    /// Returns the turn's outcome; nothing if a model failed before anything was fetched or
    /// derived.
    pub(super) fn conclude(mut self, ending: TurnEnd, aliases: &AliasStore) -> Option<TurnOutcome> {
        let (answer, stop_reason, error) = match ending {
            TurnEnd::Answer(answer) => (Some(answer), StopReason::CompleteAnswer, None),
            TurnEnd::Steps => (None, StopReason::BoundedRuntimeBudget, None),
            TurnEnd::Attempts => (None, StopReason::AttemptsExhausted, None),
            TurnEnd::Model(error) => (None, StopReason::ModelFailed, Some(error)),
        };
        if let Some(error) = error {
            if !self.fetched && self.derived.is_empty() {
                return None;
            }
            tracing::warn!(%error, "the model failed");
        }
        let gaps = self.gaps(stop_reason);
        let (outcome, text) = match answer {
            Some(answer) if gaps.is_empty() => (Conclusion::Answer, answer),
            answer => {
                let latest = self.derived.len().saturating_sub(DERIVED_TEXTS);
                let derived = &self.derived[latest..];
                (
                    Conclusion::BestEffort,
                    best_effort::text(answer, derived, aliases, &gaps),
                )
            }
        };
        let artifacts_left_out = self.artifacts.len().saturating_sub(self.budget.artifacts);
        self.artifacts.drain(..artifacts_left_out);
        Some(TurnOutcome {
            outcome,
            text,
            gaps,
            artifacts: self.artifacts,
            artifacts_left_out,
            steps_used: self.steps,
            derivations: self.derivations,
            stop_reason,
        })
    }

    /// Returns the gaps, the most important first.
    fn gaps(&self, stop: StopReason) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let latest = match &self.mistake {
            Some(mistake) => format!("; the latest failure: {mistake}"),
            None => String::new(),
        };
        if self.lacks_chart() {
            let message = format!("a chart was requested but could not be made{latest}");
            gaps.push(Gap::new("chart_missing", message));
        }
        if stop == StopReason::BoundedRuntimeBudget {
            let message = format!(
                "the turn ended after {} steps, before an answer was complete",
                self.steps
            );
            gaps.push(Gap::new("step_budget_exhausted", message));
        }
        if self.exhausted {
            let message = format!("the derivation failed too often and was given up{latest}");
            gaps.push(Gap::new("attempts_exhausted", message));
        }
        if stop == StopReason::ModelFailed {
            let message = "the model failed before it had answered";
            gaps.push(Gap::new("model_failed", message));
        }
        gaps
    }
}

#[cfg(test)]
mod tests;
