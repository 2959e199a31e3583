//! The loop of a turn.

use serde_json::Value;

use super::best_effort::Reader;
use super::deriver::{Derived, Deriver, Held};
use super::evidence::{Evidence, Tools};
use super::model::{Model, Step, ToolCall};
use super::outcome::{TurnError, TurnOutcome};
use super::plan::{Budget, Plan};
use super::progress::{Progress, Stop};
use super::transcript::{Entry, Transcript};
use crate::contract::DerivationCall;
use crate::derivation::tools::{CODE_INTERPRETER, Offer, RENDER_CHART, code_interpreter, render_chart};

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
            progress: Progress::new(self.plan, self.budget),
        };
        let stop = work.follow(model).await;
        work.end(stop).await
    }
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
        while self.progress.steps_left() > 0 {
            self.transcript.tools = self.offered();
            self.transcript.steps_left = self.progress.steps_left();
            self.transcript
                .fit(self.evidence, self.turn.budget.transcript_tokens);
            self.progress.step();
            match model.step(&self.transcript).await {
                Ok(Step::Answer(answer)) => match self.progress.reminder() {
                    Some(notice) => self.transcript.entries.push(Entry::Notice(notice.to_owned())),
                    None => return Stop::Answer(answer),
                },
                Err(error) => return Stop::Model(error),
                Ok(Step::Tools(calls)) => {
                    let nothing_else = calls.iter().all(|call| call.name == CODE_INTERPRETER);
                    if self.progress.exhausted() && nothing_else {
                        return Stop::Attempts;
                    }
                    self.run_calls(calls).await;
                }
            }
        }
        Stop::Steps
    }

    /// The host's tools and the toolset's, without an interpreter that failed too often.
    fn offered(&self) -> Vec<super::ToolDefinition> {
        let mut offered = self.tools.definitions();
        offered.retain(|tool| ![CODE_INTERPRETER, RENDER_CHART].contains(&tool.name.as_str()));
        if !self.progress.exhausted() {
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
                self.progress.fetched();
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
        let derived = match DerivationCall::read(arguments) {
            Ok(call) => self.deriver.derive(call).await,
            Err(rejections) => Ok(self.deriver.refuse(rejections)),
        };
        self.progress.attempted(derived.as_ref().ok());
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
                self.progress.broke();
                return failed(text.to_owned());
            }
        };
        self.progress.derived(&derived);
        CallResult {
            alias: derived.alias,
            text: derived.text,
            failed: !derived.ok,
        }
    }

    async fn end(self, stop: Stop) -> Result<TurnOutcome, TurnError> {
        self.deriver.close().await;
        self.progress.conclude(stop, self.evidence, Reader::Model)
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
