//! What runs the code of a turn.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::research::{Derivation, Terms};
use crate::wire::{InterpreterOutput, Item, ItemStatus, Output, Part};

/// Where the code of one turn runs, and what its model finds there.
pub trait Runner: Send + Sync {
    /// Paths of the files that are there from the start. The model is told of them.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the model has to know where variables and files are not kept from call to call; `None` where they are.
    fn about(&self) -> Option<&str> {
        None
    }

    /// What the model has to know where code of earlier turns ran in a sandbox that has ended.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Whether code can derive from what was fetched.
    fn derives(&self) -> bool {
        false
    }

    /// Items as the model reads them: files and pictures of users become texts and `data:` URLs.
    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(async { items })
    }

    /// Says where the next call of a step runs; `before` calls of the step are there already. That is known before the call's code is; a
    /// sandbox may be made when the code runs.
    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn Place>>;
}

/// Where a call runs.
pub trait Place: Send + Sync {
    /// The container's id. Calls of one container run one after the other.
    fn container(&self) -> &str;

    /// Waits until code can run there; or says why it cannot. Dropping it gives the place in the queue up.
    fn ready(&self) -> BoxFuture<'_, Result<(), Ran>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs code to its end. Code that fails, and a sandbox that cannot be had, are told in what comes back. Dropping it stops the code.
    fn run(&self, code: Code) -> BoxFuture<'_, Ran>;
}

/// Code that a model wants to run.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The code.
    pub code: String,
    /// Packages that it needs.
    pub requirements: Vec<String>,
    /// The terms on which it derives from what was fetched; nothing of that is seen without.
    pub terms: Option<Terms>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// `completed` also where it raised, `incomplete` where it was stopped, `failed` where it was not run.
    pub status: ItemStatus,
    /// What the client is shown, if it asked for that.
    pub outputs: Vec<InterpreterOutput>,
    /// What the model reads.
    pub result: Output,
    /// Files that it made or changed.
    pub made: Vec<Made>,
    /// What it derived, where it had terms.
    pub derivation: Option<Derivation>,
}

/// A file that code made, which texts may refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The container that it is in.
    pub container: String,
    /// Its id there.
    pub id: String,
    /// Its path, as models and users call it.
    pub path: String,
}

impl Made {
    /// Its name.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Ran {
    /// The same, with something that was to be said before.
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
            Output::Text(result) => Output::Text(format!("{text}\n{result}")),
            Output::Parts(parts) => {
                let first = Part::InputText { text };
                Output::Parts([first].into_iter().chain(parts).collect())
            }
        };
        self
    }

    /// Code that was not run, and why.
    pub fn refused(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            status: ItemStatus::Failed,
            outputs: vec![InterpreterOutput::Logs { logs: why.clone() }],
            result: Output::Text(why),
            made: Vec::new(),
            derivation: None,
        }
    }
}
