//! Rehearsals: tries that list the calls that code would make of functions that write.
//!
//! ```text
//! rehearse ──> a try, in which such calls answer with null
//!                 ├─ it completed and made none ──> kept: that was the run
//!                 ├─ it completed ──> discarded; its calls can be approved
//!                 └─ it did not   ──> discarded; nothing can be approved
//! ```
//!
//! Half of a loop is never approved: a rehearsal that raises because it needs the answer of such a call,
//! or that makes more calls than one approval covers, has to be repaired first.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::tries::TryResult;
use crate::cell::Cell;
use crate::connector::{IntendedWrite, WriteMode, WriteRecorder};
use crate::error::Result;
use crate::execution::{Execution, Outcome};
use crate::session::actor::Actor;
use crate::session::effects::Effects;
use crate::session::request::Task;
use crate::session::runtime::Runtime;
use crate::session::{Request, Session};

/// Note for a model whose code did not come to its end in a rehearsal.
const UNFINISHED: &str = "[rehearsal] The code can make calls that need approval, so it was rehearsed. \
                              It did not come to its end, or made more calls than one approval covers: \
                              there is nothing to approve, nothing was written, and variables and files \
                              are as before. In a rehearsal, functions that write return None. Write code \
                              that comes to its end with that, and use their results in a later call.";

/// Note for a model whose code ended its sandbox in a rehearsal.
const LOST: &str = "[rehearsal] The code can make calls that need approval, so it was rehearsed. It ended \
                    its sandbox, with all variables and files of the session: there is nothing to \
                    approve, and no function that writes was called.";

/// Result of a rehearsal.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The execution. Its effects are those of the session only if the rehearsal is [`kept`](Self::kept).
    pub execution: Execution,
    /// Calls that the code would make of functions that write; empty if it did not come to its end.
    pub writes: Vec<IntendedWrite>,
    /// Whether the code made no such calls and completed, so that it need not run again.
    pub kept: bool,
    /// Whether the code ended its sandbox, so that there is no state from before it.
    pub lost: bool,
}

impl Rehearsal {
    /// Returns whether a person can approve its calls. The code need not run again otherwise, or
    /// has to be repaired first.
    pub const fn can_be_approved(&self) -> bool {
        !self.kept && !self.writes.is_empty()
    }

    /// Returns a note for the model if there is nothing to approve, although the code was not kept.
    pub const fn note(&self) -> &'static str {
        if self.lost { LOST } else { UNFINISHED }
    }

    /// Returns its calls in words, one on each line, for a person or a model.
    pub fn list(&self) -> String {
        let lines = self.writes.iter().map(|write| format!("- {write}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Session {
    /// Returns whether its code can call a function that needs approval, and is rehearsed therefore.
    pub async fn needs_rehearsal(&self) -> Result<bool> {
        self.ask(Effects::USE, |actor| {
            async move { Ok(actor.contents.grants.need_approval().await) }.boxed()
        })
        .await
    }

    /// Rehearses a cell: runs it as a try in which functions that write are not called, answer with
    /// null and are listed. Approved calls are those of [`Cell::approved`].
    ///
    /// A state that could not be brought back is reported as a
    /// [`CheckpointError`](super::CheckpointError) before the cell runs.
    pub async fn rehearse(&self, cell: impl Into<Cell>) -> Result<Rehearsal> {
        let cell = cell.into();
        self.request(|answer| {
            let task = Task::self_answering(Effects::USE, move |actor| {
                async move {
                    match actor {
                        Ok(actor) => answer_rehearsal(actor, cell, answer).await,
                        Err(error) => drop(answer.send(Err(error))),
                    }
                }
                .boxed()
            });
            Request::Task(task)
        })
        .await
    }
}

impl Runtime {
    /// Returns the treatment of a cell's calls that change something.
    pub(in crate::session) fn write_mode(&self, cell: &Cell) -> WriteMode {
        match &self.trial {
            Some(trial) => trial.writes(),
            None => WriteMode::of_approved(cell.approved.as_deref()),
        }
    }
}

/// Rehearses a cell, and decides about its try before the answer is sent.
async fn answer_rehearsal(actor: &mut Actor, cell: Cell, mut answer: oneshot::Sender<Result<Rehearsal>>) {
    let recorder = Arc::new(WriteRecorder::default());
    let tried = actor
        .try_while_wanted(cell, Some(Arc::clone(&recorder)), &mut answer)
        .await;
    let rehearsed = match tried {
        Ok(tried) => settle(actor, tried, &recorder, answer.is_closed()).await,
        Err(error) => Err(error),
    };
    let rehearsed = actor.conclude(rehearsed);
    // Nobody may wait any more; the try is decided all the same.
    let _ = answer.send(rehearsed);
}

/// Decides about the try of a rehearsal, whose caller may have gone.
async fn settle(
    actor: &mut Actor,
    tried: TryResult,
    recorder: &WriteRecorder,
    gone: bool,
) -> Result<Rehearsal> {
    let TryResult {
        execution, undecided, ..
    } = tried;
    let completed = undecided && execution.outcome == Outcome::Completed;
    let writes = recorder.take().filter(|_| completed);
    let kept = writes.as_ref().is_some_and(Vec::is_empty) && !gone;
    if undecided {
        if let Err(error) = actor.decide(kept).await {
            actor.end_try().await;
            return Err(error);
        }
        if kept {
            let (runtime, contents, journal) = actor.parts();
            runtime.save_volume_between_cells(contents, journal).await;
        }
    }
    Ok(Rehearsal {
        execution,
        writes: writes.unwrap_or_default(),
        kept,
        lost: !undecided,
    })
}
