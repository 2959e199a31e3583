//! Running the code of a turn.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::research::DerivationOutcome;
use super::toolset::ToolsetCall;
use crate::wire::{CallFault, CallReport, FunctionOutput, InterpreterOutput, Item, ItemStatus, Part};

/// The environment in which the code of one turn runs.
pub trait Runner: Send + Sync {
    /// Returns paths of the initial files, which the model is shown.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns a note for the model if variables and files are not kept between calls; `None` if
    /// they are.
    fn about(&self) -> Option<&str> {
        None
    }

    /// Returns a note for the model if code of earlier turns ran in a sandbox that has ended.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Returns whether code can derive from fetched data.
    fn derives(&self) -> bool {
        false
    }

    /// Returns items in the form for the model: files and pictures of users become texts and
    /// `data:` URLs.
    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(async { items })
    }

    /// Returns the place of a step's next call; `before` calls of the step exist already. The place
    /// is known before the call's code is; a sandbox may be created when the code runs.
    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>>;
}

/// The place where a call runs.
pub trait CallSandbox: Send + Sync {
    /// Returns the container's id. Calls of one container run one after the other.
    fn container(&self) -> &str;

    /// Waits until code can run there, or returns why it cannot. Dropping the future leaves the
    /// queue.
    fn ready(&self) -> BoxFuture<'_, Result<(), CallResult>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs a call, of code or of another tool, to its end. Its failures, and unavailable
    /// sandboxes, are reported in the result. Dropping the future stops it.
    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult>;
}

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
}
