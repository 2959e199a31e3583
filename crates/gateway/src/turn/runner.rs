//! What runs the code of a turn.

use futures_util::future::BoxFuture;

use crate::wire::{InterpreterOutput, ItemStatus, Output};

/// Runs the code of one turn, in one container.
pub trait Runner: Send + Sync {
    /// The container's id. It is known before any code is; its sandbox may be made when the first code runs.
    fn container(&self) -> &str;

    /// Runs code to its end. Code that fails, and a sandbox that cannot be had, are told in what comes back.
    fn run(&self, code: Code) -> BoxFuture<'_, Ran>;

    /// Stops what runs now, as nobody waits for it any more.
    fn stop(&self);
}

/// Code that a model wants to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub code: String,
    /// Packages that it needs.
    pub requirements: Vec<String>,
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
}

impl Ran {
    /// Code that was not run, and why.
    pub fn refused(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            status: ItemStatus::Failed,
            outputs: vec![InterpreterOutput::Logs { logs: why.clone() }],
            result: Output::Text(why),
        }
    }
}
