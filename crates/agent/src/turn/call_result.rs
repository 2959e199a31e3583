//! Results of calls, and the files that they made.

use serde_json::Value;

use super::derived::DerivationOutcome;
use crate::wire::{CallFault, CallReport, FunctionOutput, InterpreterOutput, ItemStatus, Part};

/// Maximum number of tokens of an execution's outputs, and of each stream, in the model's result,
/// and of a toolset's result.
pub(super) const TOKENS: usize = 4000;

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// `completed` even if it raised, `incomplete` if it was stopped, `failed` if it was not run.
    pub status: ItemStatus,
    /// Outputs for the client, if requested.
    pub outputs: Vec<InterpreterOutput>,
    /// Result for the model.
    pub result: FunctionOutput,
    /// Files that it created or changed.
    pub made: Vec<OutputFile>,
    /// Its derivation, if it had terms.
    pub derivation: Option<DerivationOutcome>,
    /// Details for clients that receive them.
    pub report: CallReport,
    /// Arguments of the request for approval, if the code was rehearsed: the code, and the calls
    /// that it would make.
    pub asks: Option<String>,
}

/// A file that code created, which texts may refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Id of its container.
    pub container: String,
    /// Id in the container.
    pub id: String,
    /// Path, as models and users know it.
    pub path: String,
}

impl OutputFile {
    /// Returns its name.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl CallResult {
    /// Puts a note before the result.
    #[must_use]
    pub fn after(mut self, note: &str) -> Self {
        self.outputs.insert(
            0,
            InterpreterOutput::Logs {
                logs: note.to_owned(),
            },
        );
        let text = note.to_owned();
        self.result = match self.result {
            FunctionOutput::Text(result) => FunctionOutput::Text(format!("{text}\n{result}")),
            FunctionOutput::Parts(parts) => {
                let first = Part::InputText { text };
                FunctionOutput::Parts([first].into_iter().chain(parts).collect())
            }
        };
        self
    }

    /// Returns the result of code that was not run, with the reason.
    pub fn refused(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            status: ItemStatus::Failed,
            outputs: vec![InterpreterOutput::Logs { logs: why.clone() }],
            report: CallReport {
                stderr: why.clone(),
                failure: Some(CallFault::Unavailable),
                ..CallReport::default()
            },
            result: FunctionOutput::Text(why),
            made: Vec::new(),
            derivation: None,
            asks: None,
        }
    }

    /// Returns its report, with the files that it made.
    pub(super) fn report(&self) -> CallReport {
        let files = self.made.iter().map(|file| file.id.clone()).collect();
        CallReport {
            files,
            ..self.report.clone()
        }
    }

    /// Says that it was not run because of its arguments.
    pub(super) fn misused(mut self) -> Self {
        self.report.failure = Some(CallFault::InvalidInput);
        self
    }

    /// Returns a tool's result that is JSON.
    pub fn json(result: &Value) -> Self {
        Self {
            status: if result["success"] == false {
                ItemStatus::Failed
            } else {
                ItemStatus::Completed
            },
            outputs: Vec::new(),
            result: FunctionOutput::Text(result.to_string()),
            made: Vec::new(),
            derivation: None,
            report: CallReport::default(),
            asks: None,
        }
    }
}
