//! The tools with which a turn fetches, and the terms on which its code derives.

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

/// The tools with which a turn fetches and derives.
#[derive(Clone, Debug)]
pub struct Research {
    /// Servers whose tools the turn may call.
    pub sources: Vec<Source>,
    /// Results of tools.
    pub evidence: Evidence,
    /// Terms of derivations; `None` if code does not see the fetched data.
    pub deriving: Option<Deriving>,
    /// Plan of the turn.
    pub plan: Plan,
    /// Additional model calls if a chart was requested.
    pub chart_boost: u32,
    /// Number of tokens of results that the model rereads.
    pub tokens: usize,
    /// URLs of artifacts.
    pub urls: Urls,
}

/// Terms of derivations.
#[derive(Clone, Debug)]
pub struct Deriving {
    /// Whether code without a contract is rejected.
    pub required: bool,
    /// Policy for derivations.
    pub policy: Policy,
    /// Interpreter that draws charts without code, and defines what code may import.
    pub interpreter: Arc<Interpreter>,
}

/// The terms on which code derives from results.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The call's declaration.
    pub call: DerivationCall,
    /// Results of tools.
    pub aliases: AliasStore,
    /// Failed attempts of the turn.
    pub attempts: Arc<Mutex<Attempts>>,
    /// Policy for the derivation.
    pub policy: Policy,
}

/// Result of code that derived.
#[derive(Clone, Debug, PartialEq)]
pub struct Derivation {
    /// The facts that a turn needs.
    pub told: Derived,
    /// Emitted artifacts.
    pub artifacts: Vec<ArtifactEnvelope>,
    /// Result of the code.
    pub result: Option<Value>,
}

/// Structured charts are included, in Python and without it.
const OFFER: Offer = Offer {
    render_chart: true,
    require_inputs: false,
};

impl Deriving {
    /// Returns the interpreter as offered to the model.
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

    /// Returns the prompt before the model's instructions, without the fetched data.
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

    /// Returns the terms of a call from its arguments; `None` for one that needs none. Errors are
    /// in words for the model, and count as a failed attempt.
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
    /// Returns the tool that draws a chart from one result, as offered to a model.
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

/// Lists the fetched results, one per line.
pub(super) fn lines(evidence: &Evidence) -> Vec<AliasLine> {
    let aliases = evidence.aliases();
    let line = |alias: String| AliasLine {
        summary: aliases.summary(&alias).unwrap_or_default(),
        alias,
    };
    aliases.aliases().into_iter().map(line).collect()
}
