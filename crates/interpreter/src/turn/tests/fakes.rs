//! A scripted model, tools that answer or fail, and a deriver that counts what is asked of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::contract::{ArtifactKind, DerivationCall};
use crate::rejection::Rejection;
use crate::turn::{
    Derived, Deriver, Emitted, Evidence, Model, ModelError, Step, ToolCall, ToolDefinition, ToolError, Tools,
    Transcript,
};

/// What the model does at one step.
pub(super) enum Act {
    Take(Step),
    Fail,
    Panic,
    Wait,
}

/// A model that does as it was told, and remembers what it was shown.
#[derive(Default)]
pub(super) struct Script {
    pub(super) acts: VecDeque<Act>,
    /// What it does when the script is at its end.
    pub(super) then: Option<Step>,
    pub(super) seen: Vec<Transcript>,
}

impl Script {
    pub(super) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: acts.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(super) fn forever(step: Step) -> Self {
        Self {
            then: Some(step),
            ..Self::default()
        }
    }

    /// Names of the tools that were offered at each step.
    pub(super) fn offered(&self) -> Vec<Vec<&str>> {
        let names =
            |it: &'_ Transcript| -> Vec<_> { it.tools.iter().map(|tool| tool.name.clone()).collect() };
        let known = ["get_reserves", "broken", "code_interpreter", "render_chart"];
        self.seen
            .iter()
            .map(|seen| {
                let names = names(seen);
                known
                    .into_iter()
                    .filter(|name| names.iter().any(|it| it == name))
                    .collect()
            })
            .collect()
    }
}

impl Model for Script {
    async fn step(&mut self, transcript: &Transcript) -> Result<Step, ModelError> {
        self.seen.push(transcript.clone());
        let act = self.acts.pop_front().or_else(|| self.then.clone().map(Act::Take));
        match act {
            Some(Act::Take(step)) => Ok(step),
            Some(Act::Fail) => Err(ModelError::new("the provider closed the connection")),
            Some(Act::Panic) => panic!("the model panics"),
            Some(Act::Wait) => std::future::pending().await,
            None => Err(ModelError::new("the script is at its end")),
        }
    }
}

pub(super) fn answer(text: &str) -> Act {
    Act::Take(Step::Answer(text.to_owned()))
}

pub(super) fn calls(names: &[(&str, Value)]) -> Act {
    let call = |(place, (name, arguments)): (usize, &(&str, Value))| ToolCall {
        id: format!("call_{place}"),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    Act::Take(Step::Tools(names.iter().enumerate().map(call).collect()))
}

pub(super) fn fetch() -> Act {
    calls(&[("get_reserves", json!({}))])
}

pub(super) fn derive() -> Act {
    calls(&[("code_interpreter", code())])
}

pub(super) fn code() -> Value {
    json!({"intent": "i", "code": "set_result(1)", "inputs": {"r": "get_reserves_1"}, "postProcessingContract": {"operation": "o"}})
}

/// Tools of which one answers, one fails, one panics.
pub(super) struct Host;

impl Tools for Host {
    fn definitions(&self) -> Vec<ToolDefinition> {
        ["get_reserves", "broken", "panics", "code_interpreter"]
            .map(|name| ToolDefinition {
                name: name.to_owned(),
                description: "of the host".to_owned(),
                parameters: json!({"type": "object"}),
            })
            .into()
    }

    async fn call(&mut self, name: &str, _arguments: &Value) -> Result<Value, ToolError> {
        match name {
            "get_reserves" => Ok(json!([{"btc": 2, "day": 1}])),
            "panics" => panic!("the tool panics"),
            _ => Err(ToolError("the service answered 503".to_owned())),
        }
    }
}

/// Results by alias; a view is so many tokens of it.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) kept: BTreeMap<String, String>,
    pub(super) full: bool,
}

impl Evidence for Ledger {
    async fn record(&mut self, tool: &str, output: &Value) -> Result<String, ToolError> {
        if self.full {
            return Err(ToolError("2 results of 2 are kept".to_owned()));
        }
        let alias = format!("{tool}_{}", self.kept.len() + 1);
        self.kept.insert(alias.clone(), output.to_string());
        Ok(alias)
    }

    fn views(&self, tokens: usize) -> BTreeMap<String, String> {
        self.kept
            .iter()
            .map(|(alias, output)| (alias.clone(), format!("{alias} within {tokens}: {output}")))
            .collect()
    }
}

/// What was asked of a deriver.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) derived: Vec<DerivationCall>,
    pub(super) refused: Vec<Vec<Rejection>>,
    pub(super) drawn: usize,
    pub(super) closed: usize,
    pub(super) abandoned: usize,
}

/// A deriver that gives what it was told to; without a word it succeeds.
#[derive(Clone, Default)]
pub(super) struct Counting {
    pub(super) asked: Arc<Mutex<Asked>>,
    pub(super) gives: Arc<Mutex<VecDeque<crate::Result<Derived>>>>,
    pub(super) never_closes: bool,
}

impl Counting {
    pub(super) fn giving(derived: impl IntoIterator<Item = crate::Result<Derived>>) -> Self {
        Self {
            gives: Arc::new(Mutex::new(derived.into_iter().collect())),
            ..Self::default()
        }
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap()
    }

    fn next(&self) -> crate::Result<Derived> {
        self.gives
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| Ok(succeeded(&[])))
    }
}

impl Deriver for Counting {
    async fn derive(&mut self, call: DerivationCall) -> crate::Result<Derived> {
        self.asked().derived.push(call);
        self.next()
    }

    fn refuse(&mut self, rejections: Vec<Rejection>) -> Derived {
        self.asked().refused.push(rejections.clone());
        Derived {
            rejections,
            attempts_left: 4,
            text: "refused".to_owned(),
            ..Derived::default()
        }
    }

    async fn render_chart(&mut self, _arguments: &Value) -> crate::Result<Derived> {
        self.asked().drawn += 1;
        self.next()
    }

    async fn close(&mut self) {
        if self.never_closes {
            std::future::pending::<()>().await;
        }
        self.asked().closed += 1;
    }

    fn abandon(&mut self) {
        self.asked().abandoned += 1;
    }
}

/// A call that kept its contract; artifacts by the name of their content.
pub(super) fn succeeded(artifacts: &[(ArtifactKind, &str)]) -> Derived {
    let emitted = |(kind, sha256): &(ArtifactKind, &str)| Emitted {
        kind: *kind,
        sha256: (*sha256).to_owned(),
    };
    Derived {
        ok: true,
        attempts_left: 5,
        artifacts: artifacts.iter().map(emitted).collect(),
        alias: Some("code_interpreter_1".to_owned()),
        text: "result: 42".to_owned(),
        ..Derived::default()
    }
}

/// A call that was rejected.
pub(super) fn rejected(attempts_left: u32) -> Derived {
    Derived {
        rejections: vec![Rejection::of_field(
            "artifact_not_emitted",
            "expectedArtifacts",
            "the contract expects `image`, but the cell emitted none",
        )],
        attempts_left,
        text: format!("rejected; {attempts_left} attempts left"),
        ..Derived::default()
    }
}
