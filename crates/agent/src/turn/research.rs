//! The tools with which a turn fetches, and the terms on which its code derives.

use std::sync::Arc;

use cellblock_artifact::Urls;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::contract::{Attempts, DerivationCall};
use cellblock_interpreter::derivation::prompt::{Prompt, PromptSettings};
use cellblock_interpreter::derivation::tools::{CODE_INTERPRETER, code_interpreter};
use cellblock_interpreter::derivation::{self, DerivationPolicy, LentResults};
use cellblock_interpreter::toolset::ToolsetTerms;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::derived::{DerivationOutcome, DerivedFacts};
use super::evidence::Evidence;
use super::plan::Plan;
use super::toolset::ToolsetCall;
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
    pub deriving: Option<DerivationTerms>,
    /// Plan of the turn.
    pub plan: Plan,
    /// Additional model calls if a chart was requested.
    pub chart_boost: u32,
    /// Number of tokens of results that the model rereads.
    pub tokens: usize,
    /// URLs of artifacts.
    pub urls: Urls,
}

impl Research {
    /// Returns whether there is nothing to report: no tools but those of this server, and no results.
    pub(super) fn is_plain(&self) -> bool {
        let own = !self.sources.is_empty() && self.sources.iter().all(Source::is_own);
        own && self.deriving.is_none() && self.evidence.aliases().aliases().is_empty()
    }
}

/// Terms of derivations.
#[derive(Clone, Debug)]
pub struct DerivationTerms {
    /// Whether code without a contract is rejected.
    pub required: bool,
    /// Policy for derivations.
    pub policy: DerivationPolicy,
    /// Interpreter that draws charts without code, and defines what code may import.
    pub interpreter: Arc<Interpreter>,
}

impl DerivationTerms {
    /// Returns the interpreter as offered to the model.
    pub(super) fn interpreter(&self, about: &str) -> Function {
        let mut tool = code_interpreter(self.policy.contract.require_inputs);
        tool.description = format!("{} {about}", tool.description);
        if !self.required {
            tool.description.push_str(
                " Code that uses no results of tools needs no `postProcessingContract`; it does not see \
                 them, then.",
            );
            if let Some(Value::Array(required)) = tool.input_schema.get_mut("required") {
                required.retain(|name| name != "postProcessingContract");
            }
        }
        tool.into()
    }

    /// Returns the prompt before the model's instructions, without the fetched data.
    pub(super) fn prompt(&self) -> Prompt {
        Prompt::new(&PromptSettings::of(&self.policy, &self.interpreter.libraries()))
    }

    /// Returns a call of the derivation toolset over the results of the turn.
    pub(super) fn call(
        &self,
        tool: &str,
        arguments: Value,
        evidence: &Evidence,
        attempts: &Arc<Mutex<Attempts>>,
    ) -> ToolsetCall {
        let results = LentResults {
            aliases: evidence.aliases().clone(),
            policy: self.policy.clone(),
            attempts: Arc::clone(attempts),
        };
        ToolsetCall {
            kind: derivation::KIND,
            tool: tool.to_owned(),
            arguments,
            terms: ToolsetTerms {
                results: Some(results),
                ..ToolsetTerms::default()
            },
            lent: Vec::new(),
        }
    }

    /// Returns the call of code that derives; `None` for code without a contract that needs none.
    /// Errors are in words for the model, and count as a failed attempt.
    pub(super) fn code(
        &self,
        arguments: &Map<String, Value>,
        evidence: &Evidence,
        attempts: &Arc<Mutex<Attempts>>,
    ) -> Result<Option<ToolsetCall>, Box<DerivationOutcome>> {
        if !self.required && arguments.get("postProcessingContract").is_none_or(Value::is_null) {
            return Ok(None);
        }
        let arguments = Value::Object(arguments.clone());
        match DerivationCall::read(&arguments) {
            Ok(_) => Ok(Some(self.call(CODE_INTERPRETER, arguments, evidence, attempts))),
            Err(rejections) => {
                let mut attempts = attempts.lock();
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
                Err(Box::new(DerivationOutcome {
                    told: DerivedFacts {
                        failure: Some(mistakes.join("; ")),
                        attempts_left: attempts.left(),
                        rejections,
                        text,
                        ..DerivedFacts::default()
                    },
                    artifacts: Vec::new(),
                    result: None,
                }))
            }
        }
    }
}
