//! Tries: cells whose effects count only once they are kept.
//!
//! ```text
//! try ──> the state is kept ──> the cell runs ──> undecided ──keep──> the kept state is dropped
//!                                                     └──discard──> the session goes back to the kept state
//! ```
//!
//! While a try is undecided, all other requests of the session are refused: nothing of it is
//! visible, and nothing is built on it. Meanwhile no volume is saved, and the cell is offered no
//! function that writes.

use std::pin::pin;
use std::sync::Arc;

use cellblock_protocol::{CallError, CellNames, Obstacle};
pub use cellblock_protocol::{ChangeKind, FileDifference};
use cellblock_sandbox::backend::BoxFuture;
use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::CheckpointError;
use super::table::{OF_TRY, Trial};
use crate::cell::Cell;
use crate::connector::WriteRecorder;
use crate::error::{Error, Result};
use crate::execution::Execution;
use crate::host_call::{HostCall, HostMethods, HostReply};
use crate::session::actor::Actor;
use crate::session::contents::files::escape;
use crate::session::effects::Effects;
use crate::session::journal::timeline::TimelineEvent;
use crate::session::request::Task;
use crate::session::runtime::Runtime;
use crate::session::{Request, Session};

/// Maximum number of changed files that a try names, and of variables of each kind.
const MAX_NAMED: u32 = 200;
/// Name of the action in errors.
const TRY: &str = "try a cell";

/// A cell that was tried.
#[derive(Clone, Debug)]
pub struct TryResult {
    /// The execution.
    pub execution: Execution,
    /// Changes of the try.
    pub changes: TryChanges,
    /// Whether it can be kept or discarded; otherwise the cell has ended its sandbox, with everything in it.
    pub undecided: bool,
}

/// Changes of a try.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryChanges {
    /// Variables that Python code created, changed or removed, by name. A change through another
    /// name of the same object is not detected.
    pub variables: Vec<ChangedVariable>,
    /// Files, links and directories below `/workspace` and `/tmp` that it created, changed or
    /// removed; at most 200.
    pub files: Vec<FileDifference>,
    /// Number of changed files that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_omitted: u64,
}

/// A variable that differs from the state before a try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedVariable {
    /// Name.
    pub name: String,
    /// Kind of the difference.
    pub change: ChangeKind,
}

/// The result of a decision about a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedTry {
    /// Number of its cell.
    pub cell: u64,
    /// Whether it was kept.
    pub kept: bool,
}

impl Session {
    /// Runs a cell whose effects count only once [`Self::keep_try`] is called. Until that or
    /// [`Self::discard_try`], all other requests are refused. Calls of connectors that change
    /// something outside are rejected.
    ///
    /// A state that could not be brought back is reported as a [`CheckpointError`] before the cell runs.
    pub async fn try_run(&self, cell: impl Into<Cell>) -> Result<TryResult> {
        let cell = cell.into();
        self.request(|answer| {
            let task = Task::self_answering(Effects::USE, move |actor| {
                async move {
                    match actor {
                        Ok(actor) => actor.answer_try(cell, answer).await,
                        Err(error) => drop(answer.send(Err(error))),
                    }
                }
                .boxed()
            });
            Request::Task(task)
        })
        .await
    }

    /// Keeps the undecided try: its variables and files are the session's.
    pub async fn keep_try(&self) -> Result<DecidedTry> {
        self.decide_try(true).await
    }

    /// Discards the undecided try: variables and files are what they were before it, and what it
    /// started is ended.
    pub async fn discard_try(&self) -> Result<DecidedTry> {
        self.decide_try(false).await
    }

    /// Keeps or discards the undecided try.
    pub async fn decide_try(&self, keep: bool) -> Result<DecidedTry> {
        self.ask(Effects::DECISION, move |actor| actor.decide(keep).boxed())
            .await
    }
}

impl Runtime {
    /// Returns what the try has changed.
    async fn changes(&mut self) -> Result<TryChanges> {
        let (Some(trial), Some(sandbox)) = (&mut self.trial, &self.sandbox) else {
            return Ok(TryChanges::default());
        };
        let (mut files, total) = sandbox.guest().changes(OF_TRY, MAX_NAMED).await?;
        for file in &mut files {
            file.path = escape(&file.path);
        }
        Ok(TryChanges {
            variables: trial.names.take().map_or_else(Vec::new, changed_variables),
            files_omitted: total.saturating_sub(files.len() as u64),
            files,
        })
    }
}

impl Actor {
    /// Tries a cell, and takes the try back if nobody waits for it any more.
    async fn answer_try(&mut self, cell: Cell, mut answer: oneshot::Sender<Result<TryResult>>) {
        let tried = self.try_while_wanted(cell, None, &mut answer).await;
        let tried = self.conclude(tried);
        // Nobody would decide about it.
        if answer.send(tried).is_err() && self.runtime.trial.is_some() {
            let undone = self.decide(false).await;
            // The request is over already.
            _ = self.give_up_broken(undone);
        }
    }

    /// Refuses a request that would see an undecided try, or returns it.
    pub(in crate::session) async fn hold_back(&mut self, request: Request) -> Option<Request> {
        // What is gone needs no decision.
        if self.runtime.trial.is_some() && self.runtime.loss().is_some() {
            self.runtime.discard(&mut self.contents, &mut self.journal);
        }
        let Some(trial) = &self.runtime.trial else {
            return Some(request);
        };
        let cell = trial.cell;
        if request.effects().beside_try {
            return Some(request);
        }
        self.runtime.interrupts.over();
        request.refuse(CheckpointError::Undecided { cell }.into()).await;
        None
    }

    /// Discards a try that the end of the session or its sandbox leaves undecided.
    pub(in crate::session) async fn end_try(&mut self) {
        if self.runtime.trial.is_some()
            && let Err(error) = self.decide(false).await
        {
            tracing::info!(
                error = &error as &dyn std::error::Error,
                "an undecided try ends with its sandbox"
            );
            self.runtime.discard(&mut self.contents, &mut self.journal);
        }
    }

    /// Tries a cell, or rehearses it with a recorder, until nobody waits for the answer.
    pub(super) async fn try_while_wanted<T>(
        &mut self,
        cell: Cell,
        recorder: Option<Arc<WriteRecorder>>,
        answer: &mut oneshot::Sender<Result<T>>,
    ) -> Result<TryResult> {
        let (mut asker, asking) = oneshot::channel();
        let mut asking = Some(asking);
        let mut work = pin!(self.try_cell(cell, recorder, &mut asker));
        loop {
            tokio::select! {
                biased;
                tried = &mut work => return tried,
                () = answer.closed(), if asking.is_some() => asking = None,
            }
        }
    }

    async fn try_cell(
        &mut self,
        cell: Cell,
        recorder: Option<Arc<WriteRecorder>>,
        asker: &mut oneshot::Sender<Result<Execution>>,
    ) -> Result<TryResult> {
        cell.check()?;
        if cell.dry_run || cell.last {
            let reason = "a dry run or a last cell cannot be tried; run it as a cell".to_owned();
            return Err(Error::Argument {
                name: "cell",
                missing: false,
                reason,
            });
        }
        self.runtime.has_checkpoints()?;
        self.runtime.ready(&mut self.contents, &mut self.journal).await?;
        let number = self.journal.cells + 1;
        if let Err(id) = self.runtime.processes.hold(number) {
            return Err(CheckpointError::refused(TRY, &Obstacle::Process { id }).into());
        }
        if let Err(error) = self.hold(TRY, None, true).await {
            self.runtime.processes.release();
            return Err(error);
        }
        self.runtime.trial = Some(Trial {
            cell: number,
            names: None,
            recorder,
        });
        let recording = self
            .runtime
            .recording(&mut self.contents, &mut self.journal, &cell, None);
        let ran = self.execute(cell, None, None, Some(asker)).await;
        self.runtime
            .record(&mut self.contents, &mut self.journal, recording, &ran)
            .await;
        self.journal.note_event(TimelineEvent::Tried);
        let tried = match ran {
            Ok(execution) => self.runtime.changes().await.map(|changes| (execution, changes)),
            Err(error) => Err(error),
        };
        match tried {
            Ok((execution, changes)) => Ok(TryResult {
                execution,
                changes,
                undecided: self.runtime.trial.is_some(),
            }),
            Err(error) => {
                // It was not run, or nobody knows what it did.
                self.end_try().await;
                Err(error)
            }
        }
    }

    pub(super) async fn decide(&mut self, keep: bool) -> Result<DecidedTry> {
        let (Some(trial), Some(place)) = (&self.runtime.trial, self.runtime.kept.of_try()) else {
            return Err(CheckpointError::NoTry.into());
        };
        let cell = trial.cell;
        if !keep {
            match self.go_back(place).await {
                Ok(true) => {}
                Ok(false) => return Err(CheckpointError::TryEnded { cell }.into()),
                Err(reason) => return Err(CheckpointError::TryLost { cell, reason }.into()),
            }
        }
        self.runtime.trial = None;
        self.journal.note_event(if keep {
            TimelineEvent::TryKept
        } else {
            TimelineEvent::TryDiscarded
        });
        self.runtime.processes.release();
        let kept = self.runtime.kept.take(place);
        self.runtime.forget_files(kept.number).await?;
        Ok(DecidedTry { cell, kept: keep })
    }
}

/// The names that a kernel reports are an allegation; the ledger has dropped those that are none.
fn changed_variables(names: CellNames) -> Vec<ChangedVariable> {
    let CellNames {
        assigned,
        created,
        deleted,
        changed,
        ..
    } = names;
    let bound = assigned.into_iter().map(|name| {
        let change = if created.contains(&name) {
            ChangeKind::Created
        } else {
            ChangeKind::Changed
        };
        (name, change)
    });
    let changed = changed.into_iter().map(|name| (name, ChangeKind::Changed));
    let deleted = deleted.into_iter().map(|name| (name, ChangeKind::Removed));
    let most = MAX_NAMED as usize;
    let all = bound
        .take(most)
        .chain(changed.take(most))
        .chain(deleted.take(most));
    all.map(|(name, change)| ChangedVariable { name, change })
        .collect()
}

/// Methods that the code of a try can call: nothing that publishes. Connectors refuse by themselves what
/// changes something outside.
#[derive(Debug)]
pub(in crate::session) struct TryMethods(pub(in crate::session) Box<dyn HostMethods>);

impl HostMethods for TryMethods {
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>> {
        if call.method != "dataset.publish" {
            return self.0.call(call);
        }
        let message = "a try cannot publish a dataset, because others would see it: keep the try, and \
                       publish in the next cell. Code that is rehearsed because its calls need approval \
                       is such a try: leave the publication out";
        let error = CallError {
            code: "not_granted".to_owned(),
            message: message.to_owned(),
            details: serde_json::Value::Null,
        };
        Box::pin(async { Err(error) })
    }

    fn waited(&self) -> std::time::Duration {
        self.0.waited()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
