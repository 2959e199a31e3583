//! What a turn fetches with, and how its code derives from what was fetched.

use std::sync::{Arc, Mutex, PoisonError};

use cellblock_artifact::{ArtifactEnvelope, Urls};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::alias::AliasStore;
use cellblock_interpreter::contract::{Attempts, DerivationCall};
use cellblock_interpreter::derivation::Policy;
use cellblock_interpreter::derivation::prompt::{AliasLine, Prompt, PromptSettings};
use cellblock_interpreter::derivation::tools::{Offer, code_interpreter, render_chart};
use serde_json::{Map, Value};

use super::derived::Derived;
use super::evidence::Evidence;
use super::plan::Plan;
use crate::tools::Source;
use crate::wire::Function;

/// What a turn fetches with and derives from.
#[derive(Clone, Debug)]
pub struct Research {
    /// The servers whose tools the turn may call.
    pub sources: Vec<Source>,
    /// Results of tools.
    pub evidence: Evidence,
    /// How code derives; `None` where it does not see what was fetched.
    pub deriving: Option<Deriving>,
    /// What the request needs to be answered.
    pub plan: Plan,
    /// Model calls on top where a chart was asked for.
    pub chart_boost: u32,
    /// Tokens of results that the model rereads.
    pub tokens: usize,
    /// How artifacts are addressed.
    pub urls: Urls,
}

/// How code derives.
#[derive(Clone, Debug)]
pub struct Deriving {
    /// Whether code without a contract is refused.
    pub required: bool,
    /// What derivations are held to.
    pub policy: Policy,
    /// What draws charts without code, and says what code may import.
    pub interpreter: Arc<Interpreter>,
}

/// The terms on which code derives from results.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What it declares.
    pub call: DerivationCall,
    /// The results.
    pub aliases: AliasStore,
    /// How often the turn may still fail.
    pub attempts: Arc<Mutex<Attempts>>,
    /// What it is held to.
    pub policy: Policy,
}

/// What came of code that derived.
#[derive(Clone, Debug, PartialEq)]
pub struct Derivation {
    /// What a turn has to know.
    pub told: Derived,
    /// What it emitted.
    pub artifacts: Vec<ArtifactEnvelope>,
    /// What it answered.
    pub result: Option<Value>,
}

/// Structured charts are part of it, in Python and without.
const OFFER: Offer = Offer {
    render_chart: true,
    require_inputs: false,
};

impl Deriving {
    /// The interpreter as a model is told of it.
    pub(super) fn interpreter(&self, about: &str) -> Function {
        let definition = code_interpreter(OFFER);
        let mut parameters = definition.parameters.as_object().cloned().unwrap_or_default();
        let mut description = format!("{} {about}", definition.description);
        if !self.required {
            description.push_str(
                " Code that uses no results of tools needs no `postProcessingContract`; it does not see them, then.",
            );
            if let Some(Value::Array(required)) = parameters.get_mut("required") {
                required.retain(|name| name != "postProcessingContract");
            }
        }
        Function {
            name: definition.name,
            description: Some(description),
            parameters: Some(parameters),
            strict: None,
        }
    }

    /// What the model is told before its instructions, but for what was fetched so far.
    pub(super) fn prompt(&self) -> Prompt {
        Prompt::new(&PromptSettings {
            libraries: &self.interpreter.libraries(),
            render_chart: OFFER.render_chart,
            require_inputs: OFFER.require_inputs,
            max_attempts: self.policy.max_attempts,
            max_artifacts: self.policy.contract.max_artifacts,
            cell_seconds: self.policy.cell_time.as_secs(),
            ..PromptSettings::default()
        })
    }

    /// The terms of a call, by its arguments; `None` for one that needs none. What is wrong with them is told for the model, and counts as a
    /// failed attempt.
    pub(super) fn terms(
        &self,
        arguments: &Map<String, Value>,
        evidence: &Evidence,
        attempts: &Arc<Mutex<Attempts>>,
    ) -> Result<Option<Terms>, Box<Derivation>> {
        if !self.required && arguments.get("postProcessingContract").is_none_or(Value::is_null) {
            return Ok(None);
        }
        match DerivationCall::read(&Value::Object(arguments.clone())) {
            Ok(call) => Ok(Some(Terms {
                call,
                aliases: evidence.aliases().clone(),
                attempts: Arc::clone(attempts),
                policy: self.policy.clone(),
            })),
            Err(rejections) => {
                let mut attempts = attempts.lock().unwrap_or_else(PoisonError::into_inner);
                attempts.fail();
                let mistakes: Vec<_> = rejections
                    .iter()
                    .map(|rejection| rejection.message.as_str())
                    .collect();
                let text = format!(
                    "The code was not run: {}. {}",
                    mistakes.join("; "),
                    attempts.notice()
                );
                Err(Box::new(Derivation {
                    told: Derived {
                        failure: Some(mistakes.join("; ")),
                        attempts_left: attempts.left(),
                        rejections,
                        text,
                        ..Derived::default()
                    },
                    artifacts: Vec::new(),
                    result: None,
                }))
            }
        }
    }
}

impl Deriving {
    /// The tool that draws a chart from one result, as a model is told of it.
    pub(super) fn chart_tool() -> Function {
        let definition = render_chart();
        Function {
            name: definition.name,
            description: Some(definition.description),
            parameters: definition.parameters.as_object().cloned(),
            strict: None,
        }
    }
}

/// What was fetched so far, each result in a line.
pub(super) fn lines(evidence: &Evidence) -> Vec<AliasLine> {
    let aliases = evidence.aliases();
    let line = |alias: String| AliasLine {
        summary: aliases.summary(&alias).unwrap_or_default(),
        alias,
    };
    aliases.aliases().into_iter().map(line).collect()
}
