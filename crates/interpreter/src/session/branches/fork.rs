//! Forks of a session: independent sessions, each with its own sandbox, that begin with its
//! variables and files.
//!
//! ```text
//! kernel ──> kept copy ──moved by the keep──> fresh kernel of each new sandbox
//! files  ──> snapshot  ──part by part───────> guest of each new sandbox
//! ```
//!
//! The session goes on meanwhile as if it had made a checkpoint. Its forks are handed out together,
//! or not at all.

use std::sync::Arc;

use cellblock_protocol::{Obstacle, ToKernel};
use cellblock_sandbox::backend::{KeptKernel, Lack};
use cellblock_sandbox::limits::NetworkPolicy;
use futures_util::FutureExt as _;
use tokio::sync::mpsc;

use crate::error::{Error, Result};
pub use crate::fork_error::{ForkError, MAX_FORKS};
use crate::session::Session;
use crate::session::actor::Actor;
use crate::session::branches::checkpoints::{CheckpointError, State};
use crate::session::effects::Effects;
use crate::session::journal::timeline::TimelineEvent;
use crate::session::options::SessionOptions;
use crate::session::options::SetupSnippet;
use crate::session::request::Request;

/// Number of the snapshot in a new sandbox, which has no other.
const ARRIVED: u64 = u64::MAX;
/// Room for the list of files in a snapshot, beside their contents.
const LIST_BYTES: u64 = 64 << 20;

/// Options for forking a session.
#[derive(Clone, Debug)]
pub struct ForkOptions {
    /// Number of new sessions, at most [`MAX_FORKS`].
    pub count: usize,
    /// Whether the random generators of each are seeded anew. Otherwise all go on with the same numbers.
    pub reseed: bool,
    /// Code that prepares each later kernel of the new sessions, by default that of this one.
    pub setup: Option<Vec<SetupSnippet>>,
    /// Ids of the new sessions, by default random ones.
    pub ids: Vec<String>,
}

impl ForkOptions {
    /// Returns the usual options.
    pub const fn new(count: usize) -> Self {
        Self {
            count,
            reseed: true,
            setup: None,
            ids: Vec::new(),
        }
    }

    /// Checks the number of sessions.
    pub const fn check(&self) -> std::result::Result<(), ForkError> {
        if self.count == 0 || self.count > MAX_FORKS {
            return Err(ForkError::Count { count: self.count });
        }
        Ok(())
    }
}

/// A new session whose task does not run yet.
struct SessionSeed {
    session: Session,
    actor: Actor,
    queue: mpsc::Receiver<Request>,
}

impl SessionSeed {
    fn start(self) -> Session {
        tokio::spawn(self.actor.serve(self.queue));
        self.session
    }
}

impl Session {
    /// Makes independent sessions that begin with the variables and files of this one. Each has its
    /// own sandbox with the same limits, and counts as one. They get no checkpoints, processes and
    /// lent connectors of this session, which is not changed.
    ///
    /// What cannot be moved, such as threads, is reported as a [`ForkError`] or [`CheckpointError`]
    /// before anything happens.
    pub async fn fork(&self, options: ForkOptions) -> Result<Vec<Self>> {
        let forks = self
            .ask(Effects::USE, move |actor| actor.fork(options).boxed())
            .await?;
        for fork in &forks {
            fork.added().clone_from(&self.added());
        }
        Ok(forks)
    }
}

impl Actor {
    async fn fork(&mut self, options: ForkOptions) -> Result<Vec<Session>> {
        let backend = &self.runtime.shared.backend;
        if backend.lacks().contains(&Lack::Forks) {
            let backend = backend.name();
            return Err(ForkError::Unsupported { backend }.into());
        }
        let backend_suspends = backend.suspends();
        options.check()?;
        if self.contents.volume.is_some() {
            return Err(ForkError::refused(&Obstacle::Volume).into());
        }
        // A copied machine would listen where nothing of the host answers.
        if backend_suspends && self.runtime.limits.network == NetworkPolicy::Egress {
            return Err(ForkError::refused(&Obstacle::Egress).into());
        }
        self.runtime.ready(&mut self.contents, &mut self.journal).await?;
        if let Some(id) = self.runtime.processes.running() {
            return Err(ForkError::refused(&Obstacle::Process { id }).into());
        }
        let forks = if backend_suspends {
            self.branch(&options).await?
        } else {
            self.copy(&options).await?
        };
        for fork in &forks {
            fork.actor.journal.note_event(TimelineEvent::ForkedFrom {
                session: self.journal.id.clone(),
            });
        }
        let sessions = forks.iter().map(|fork| fork.actor.journal.id.clone()).collect();
        self.journal.note_event(TimelineEvent::Forked { sessions });
        Ok(forks.into_iter().map(SessionSeed::start).collect())
    }

    /// Makes all new sessions from a copy of the kernel.
    async fn copy(&mut self, options: &ForkOptions) -> Result<Vec<SessionSeed>> {
        let snapshot = self.runtime.next_snapshot();
        let (mut kept, state) = match self
            .runtime
            .copy_state(&mut self.contents, &mut self.journal, "fork a session", snapshot)
            .await
        {
            Ok((_, _, kept, state)) => (kept, state),
            Err(Error::Checkpoint(CheckpointError::Refused { obstacle, remedy, .. })) => {
                return Err(ForkError::Refused { obstacle, remedy }.into());
            }
            Err(error) => return Err(error),
        };
        let moved = match kept.bound.take() {
            Some(obstacle) => Err(ForkError::refused(&obstacle).into()),
            None => self.move_all(options, snapshot, &mut kept, &state).await,
        };
        self.runtime.forget_files(snapshot).await?;
        moved
    }

    /// Makes all new sessions. Those that exist end if one cannot be made.
    async fn move_all(
        &self,
        options: &ForkOptions,
        snapshot: u64,
        kept: &mut KeptKernel,
        state: &State,
    ) -> Result<Vec<SessionSeed>> {
        let mut forks = Vec::new();
        for index in 0..options.count {
            let mut fork = self.unborn(options, index, state);
            if let Err(error) = self
                .move_to(&mut fork.actor, snapshot, kept, options.reseed)
                .await
            {
                for mut fork in forks.into_iter().chain([fork]) {
                    fork.actor
                        .runtime
                        .discard(&mut fork.actor.contents, &mut fork.actor.journal);
                }
                return Err(failure(error));
            }
            fork.actor.runtime.continue_from(
                &mut fork.actor.contents,
                &mut fork.actor.journal,
                state.clone(),
            );
            forks.push(fork);
        }
        Ok(forks)
    }

    /// Makes all new sessions from the state of the whole machine.
    async fn branch(&mut self, options: &ForkOptions) -> Result<Vec<SessionSeed>> {
        if self.runtime.processes.is_in_use() {
            return Err(ForkError::refused(&Obstacle::OpenConnection).into());
        }
        self.runtime.hear_out(&mut self.journal).await?;
        let state = self.runtime.state(&self.contents, &self.journal);
        let (Some(sandbox), Some(kernel)) = (self.runtime.sandbox.take(), self.runtime.kernel.take()) else {
            return Err(Error::Closed);
        };
        let id = sandbox.id().to_owned();
        let branched = match sandbox.branch(kernel, options.count).await {
            Ok(branched) => branched,
            Err(error) => {
                self.runtime.shared.returned(&id);
                self.runtime.discard(&mut self.contents, &mut self.journal);
                return Err(error.into());
            }
        };
        self.runtime.take_up(&mut self.journal, branched.own);
        let leases = branched.branches.map_err(|error| failure(error.into()))?;
        let mut forks = Vec::new();
        for (index, lease) in leases.into_iter().enumerate() {
            let mut fork = self.unborn(options, index, &state);
            let actor = &mut fork.actor;
            actor.runtime.take_up(&mut actor.journal, lease);
            actor.runtime.furnished = self.runtime.furnished;
            actor.contents.commands = self.contents.commands;
            actor.runtime.kept.begin();
            actor
                .runtime
                .continue_from(&mut actor.contents, &mut actor.journal, state.clone());
            forks.push(fork);
        }
        for fork in &mut forks {
            let message = ToKernel::Diverge {
                cell: fork.actor.runtime.number(),
                reseed: options.reseed,
            };
            let diverged = fork
                .actor
                .runtime
                .housekeeping(&mut fork.actor.journal, &message, false)
                .await;
            let reason = match diverged {
                Ok(Ok(_)) => continue,
                Ok(Err(reason)) => reason,
                Err(error) => error.to_string(),
            };
            for mut fork in forks {
                fork.actor
                    .runtime
                    .discard(&mut fork.actor.contents, &mut fork.actor.journal);
            }
            return Err(ForkError::Failed { reason }.into());
        }
        Ok(forks)
    }

    /// Returns a session with the host's part of the state.
    fn unborn(&self, options: &ForkOptions, index: usize, state: &State) -> SessionSeed {
        let own = &self.runtime.options;
        let options = SessionOptions {
            id: options.ids.get(index).cloned(),
            setup: options.setup.clone().unwrap_or_else(|| own.setup.clone()),
            // Its files are copies already.
            archive: None,
            ..own.clone()
        };
        let (session, mut actor, queue) = Session::build(Arc::clone(&self.runtime.shared), options);
        actor.contents.inputs.clone_from(&self.contents.inputs);
        actor.contents.datasets.clone_from(&self.contents.datasets);
        actor.runtime.layers.clone_from(&state.layers);
        actor.journal.cells = self.journal.cells;
        actor.journal.exited_in = self.journal.exited_in;
        actor
            .runtime
            .unusable_setup
            .clone_from(&self.runtime.unusable_setup);
        actor.runtime.bundles.clone_from(&self.runtime.bundles);
        self.runtime.branch_way_out(&actor.runtime, &actor.journal.id);
        SessionSeed {
            session,
            actor,
            queue,
        }
    }

    /// Gives a new session a sandbox with the state.
    async fn move_to(
        &self,
        fork: &mut Actor,
        snapshot: u64,
        kept: &mut KeptKernel,
        reseed: bool,
    ) -> Result<()> {
        let own = self.runtime.sandbox.as_ref().ok_or(Error::Closed)?;
        let mut kernel = fork.runtime.settle(&mut fork.contents, &mut fork.journal).await?;
        fork.runtime
            .furnish(&mut fork.contents, &mut fork.journal)
            .await?;
        let sandbox = fork.runtime.sandbox.as_ref().ok_or(Error::Closed)?;
        let guest = sandbox.guest();
        let limit = self.runtime.limits.memory_bytes.saturating_add(LIST_BYTES);
        own.guest()
            .copy_snapshot(snapshot, &[(guest, ARRIVED)], limit)
            .await?;
        guest.restore(ARRIVED).await?;
        guest.discard(ARRIVED).await?;
        own.move_kernel(kept, sandbox.as_ref(), &kernel).await?;
        kernel.arrive(reseed).await?;
        kernel.discard_written();
        fork.runtime.kernel = Some(kernel);
        fork.runtime.kept.begin();
        Ok(())
    }
}

/// Turns the failure of a move into an error of the fork.
fn failure(error: Error) -> Error {
    let Error::Sandbox(sandbox) = &error else {
        return error;
    };
    match sandbox.obstacle() {
        Some(obstacle) => ForkError::refused(obstacle).into(),
        // A sandbox that could not be had has an error of its own kind.
        None if sandbox.effect() != crate::error::Effect::Destroys => error,
        None => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a fork failed");
            let reason = sandbox.to_string();
            ForkError::Failed { reason }.into()
        }
    }
}

#[cfg(test)]
mod tests;
