//! The loop of a turn.

use serde_json::Value;

use super::best_effort;
use super::deriver::{Derived, Deriver, Emitted, Held};
use super::evidence::{Evidence, Tools};
use super::model::{Model, ModelError, Step, ToolCall};
use super::outcome::{Conclusion, Gap, StopReason, TurnError, TurnOutcome};
use super::plan::{Budget, ChartIntent, Plan};
use super::transcript::{Entry, Transcript};
use crate::contract::DerivationCall;
use crate::derivation::tools::{CODE_INTERPRETER, Offer, RENDER_CHART, code_interpreter, render_chart};

/// Derived texts that a best effort repeats.
const DERIVED_TEXTS: usize = 3;

/// One request of a user, and what may be spent on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// What the user asked for.
    pub request: String,
    /// What it is planned to give.
    pub plan: Plan,
    /// How much it may take.
    pub budget: Budget,
    /// How the toolset is offered.
    pub offer: Offer,
}

impl Turn {
    /// Lets a model work until it answers or the budget is used up, and disposes of the deriver.
    ///
    /// `Err` only where a model failed before anything was fetched or derived.
    pub async fn run<M, T, D, E>(
        &self,
        model: &mut M,
        tools: &mut T,
        deriver: D,
        evidence: &mut E,
    ) -> Result<TurnOutcome, TurnError>
    where
        M: Model,
        T: Tools,
        D: Deriver,
        E: Evidence,
    {
        let mut work = Work {
            turn: self,
            tools,
            deriver: Held::new(deriver),
            evidence,
            transcript: Transcript {
                request: self.request.clone(),
                ..Transcript::default()
            },
            progress: Progress::default(),
        };
        let stop = work.follow(model).await;
        work.end(stop).await
    }
}

impl Turn {
    fn lacks_chart(&self, artifacts: &[Emitted]) -> bool {
        self.plan.chart_intent == ChartIntent::Explicit && artifacts.is_empty()
    }
}

/// Why the loop ended.
enum Stop {
    Answer(String),
    Steps,
    Attempts,
    Model(ModelError),
}

/// What has been reached so far.
#[derive(Default)]
struct Progress {
    steps: u32,
    derivations: u32,
    exhausted: bool,
    /// Whether a missing chart was asked for again.
    reminded: bool,
    fetched: bool,
    artifacts: Vec<Emitted>,
    derived: Vec<String>,
    /// The latest mistake of a call that was to derive or draw.
    mistake: Option<String>,
}

struct Work<'a, T, D: Deriver, E> {
    turn: &'a Turn,
    tools: &'a mut T,
    deriver: Held<D>,
    evidence: &'a mut E,
    transcript: Transcript,
    progress: Progress,
}

impl<T: Tools, D: Deriver, E: Evidence> Work<'_, T, D, E> {
    async fn follow(&mut self, model: &mut impl Model) -> Stop {
        let allowed = self.turn.budget.allowed(self.turn.plan);
        while self.progress.steps < allowed {
            self.transcript.tools = self.offered();
            self.transcript.steps_left = allowed - self.progress.steps;
            self.transcript
                .fit(self.evidence, self.turn.budget.transcript_tokens);
            self.progress.steps += 1;
            match model.step(&self.transcript).await {
                Ok(Step::Answer(_)) if self.reminds(allowed) => {}
                Ok(Step::Answer(answer)) => return Stop::Answer(answer),
                Err(error) => return Stop::Model(error),
                Ok(Step::Tools(calls)) => {
                    let nothing_else = calls.iter().all(|call| call.name == CODE_INTERPRETER);
                    if self.progress.exhausted && nothing_else {
                        return Stop::Attempts;
                    }
                    self.run_calls(calls).await;
                }
            }
        }
        Stop::Steps
    }

    /// Asks once more for a chart that was asked for, where there is still time to make one. A second answer without it stands.
    fn reminds(&mut self, allowed: u32) -> bool {
        let progress = &mut self.progress;
        let possible = progress.steps + 1 < allowed && !progress.exhausted;
        if !self.turn.lacks_chart(&progress.artifacts) || !possible || progress.reminded {
            return false;
        }
        progress.reminded = true;
        let notice = "the user asked for a chart and none was emitted: make it with code_interpreter or render_chart, or answer again and say \
                      why it cannot be made";
        self.transcript.entries.push(Entry::Notice(notice.to_owned()));
        true
    }

    /// The host's tools and the toolset's, without an interpreter that failed too often.
    fn offered(&self) -> Vec<super::ToolDefinition> {
        let mut offered = self.tools.definitions();
        offered.retain(|tool| ![CODE_INTERPRETER, RENDER_CHART].contains(&tool.name.as_str()));
        if !self.progress.exhausted {
            offered.push(code_interpreter(self.turn.offer));
        }
        if self.turn.offer.render_chart {
            offered.push(render_chart());
        }
        offered
    }

    async fn run_calls(&mut self, calls: Vec<ToolCall>) {
        self.transcript.entries.push(Entry::Calls(calls.clone()));
        if calls.is_empty() {
            let notice = "the step called no tool; call one, or answer";
            self.transcript.entries.push(Entry::Notice(notice.to_owned()));
        }
        let most = self.turn.budget.calls_per_step;
        for (place, call) in calls.into_iter().enumerate() {
            let outcome = if place < most {
                self.run_call(&call).await
            } else {
                failed(format!("not run: a step may call at most {most} tools"))
            };
            self.transcript.entries.push(Entry::Result {
                call: call.id,
                tool: call.name,
                alias: outcome.alias,
                text: outcome.text,
                failed: outcome.failed,
            });
        }
    }

    async fn run_call(&mut self, call: &ToolCall) -> CallResult {
        // What is offered can change within a step: attempts are used up call by call.
        let offered = self.offered();
        if !offered.iter().any(|tool| tool.name == call.name) {
            let names: Vec<_> = offered.iter().map(|tool| format!("`{}`", tool.name)).collect();
            return failed(format!("this tool is not offered; offered: {}", names.join(", ")));
        }
        match call.name.as_str() {
            CODE_INTERPRETER => self.derive(&call.arguments).await,
            RENDER_CHART => {
                let drawn = self.deriver.render_chart(&call.arguments).await;
                self.take(drawn)
            }
            name => self.fetch(name, &call.arguments).await,
        }
    }

    async fn fetch(&mut self, name: &str, arguments: &Value) -> CallResult {
        let output = match self.tools.call(name, arguments).await {
            Ok(output) => output,
            Err(error) => return failed(error.to_string()),
        };
        match self.evidence.record(name, &output).await {
            // The text is the alias' view, made for the next step.
            Ok(alias) => {
                self.progress.fetched = true;
                CallResult {
                    text: format!("recorded as `{alias}`"),
                    alias: Some(alias),
                    failed: false,
                }
            }
            Err(error) => failed(format!("the result could not be kept: {error}")),
        }
    }

    async fn derive(&mut self, arguments: &Value) -> CallResult {
        self.progress.derivations += 1;
        let derived = match DerivationCall::read(arguments) {
            Ok(call) => self.deriver.derive(call).await,
            Err(rejections) => Ok(self.deriver.refuse(rejections)),
        };
        if let Ok(derived) = &derived {
            self.progress.exhausted = !derived.ok && derived.attempts_left == 0;
        }
        self.take(derived)
    }

    /// Takes over what a call of the toolset gave.
    fn take(&mut self, derived: crate::Result<Derived>) -> CallResult {
        let derived = match derived {
            Ok(derived) => derived,
            Err(error) => {
                // The cause may name places of the host, which no model is told.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a derivation could not run"
                );
                let text = "the interpreter could not run this call, for a reason that is not in it; go on without it";
                self.progress.mistake = Some("the interpreter itself failed".to_owned());
                return failed(text.to_owned());
            }
        };
        if derived.ok {
            self.progress.mistake = None;
            self.progress.derived.push(derived.text.clone());
            for artifact in derived.artifacts {
                self.progress
                    .artifacts
                    .retain(|earlier| earlier.sha256 != artifact.sha256);
                self.progress.artifacts.push(artifact);
            }
        } else {
            let first = derived.rejections.first().map(|it| it.message.clone());
            self.progress.mistake =
                Some(first.unwrap_or_else(|| "the code did not run to its end".to_owned()));
        }
        CallResult {
            alias: derived.alias,
            text: derived.text,
            failed: !derived.ok,
        }
    }

    async fn end(self, stop: Stop) -> Result<TurnOutcome, TurnError> {
        let Self {
            turn,
            deriver,
            evidence,
            mut progress,
            ..
        } = self;
        deriver.close().await;
        let (answer, stop_reason, error) = match stop {
            Stop::Answer(answer) => (Some(answer), StopReason::CompleteAnswer, None),
            Stop::Steps => (None, StopReason::BoundedRuntimeBudget, None),
            Stop::Attempts => (None, StopReason::AttemptsExhausted, None),
            Stop::Model(error) => (None, StopReason::ModelFailed, Some(error)),
        };
        if let Some(error) = error {
            if !progress.fetched && progress.derived.is_empty() {
                return Err(TurnError::Model(error));
            }
            tracing::warn!(error = &error as &dyn std::error::Error, "the model took no step");
        }
        let gaps = progress.gaps(turn, stop_reason);
        let (outcome, text) = match answer {
            Some(answer) if gaps.is_empty() => (Conclusion::Answer, answer),
            answer => {
                let latest = progress.derived.len().saturating_sub(DERIVED_TEXTS);
                let derived = &progress.derived[latest..];
                (
                    Conclusion::BestEffort,
                    best_effort::text(answer, derived, evidence, &gaps),
                )
            }
        };
        let artifacts_left_out = progress.artifacts.len().saturating_sub(turn.budget.artifacts);
        progress.artifacts.drain(..artifacts_left_out);
        Ok(TurnOutcome {
            outcome,
            text,
            gaps,
            artifacts: progress.artifacts,
            artifacts_left_out,
            steps_used: progress.steps,
            derivations: progress.derivations,
            stop_reason,
        })
    }
}

impl Progress {
    /// What is missing, the most telling first.
    fn gaps(&self, turn: &Turn, stop: StopReason) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let latest = match &self.mistake {
            Some(mistake) => format!("; the latest failure: {mistake}"),
            None => String::new(),
        };
        if turn.lacks_chart(&self.artifacts) {
            let message = format!("a chart was asked for and could not be made{latest}");
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

/// What the model is told of one call.
struct CallResult {
    alias: Option<String>,
    text: String,
    failed: bool,
}

fn failed(text: String) -> CallResult {
    CallResult {
        alias: None,
        text,
        failed: true,
    }
}
