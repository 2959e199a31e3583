//! Making, using and dropping checkpoints.

use cellblock_protocol::Obstacle;
use cellblock_sandbox::backend::{KeptKernel, Lack};
use cellblock_settings::clock;

use super::table::{OF_TRY, State};
use super::{Checkpoint, CheckpointError, MAX_CHECKPOINTS, NewCheckpoint, RolledBack};
use crate::error::{Effect, Error, Result};
use crate::session::actor::Actor;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::journal::timeline::TimelineEvent;
use crate::session::runtime::Runtime;

/// Name of the action in errors.
const KEEP: &str = "keep a checkpoint";

impl Runtime {
    /// Returns a number for a snapshot of files.
    pub(in crate::session) fn next_snapshot(&mut self) -> u64 {
        self.kept.next()
    }

    /// Keeps a copy of the kernel, and the files as the snapshot of a number. Returns how many
    /// files and bytes that has, the copy, and the host's part of the state. Errors name the
    /// action. The session is ready, and no process runs beside its cells.
    pub(in crate::session) async fn copy_state(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        action: &'static str,
        snapshot: u64,
    ) -> Result<(u64, u64, KeptKernel, State)> {
        let request = self.number();
        let (Some(sandbox), Some(kernel)) = (&self.sandbox, &mut self.kernel) else {
            return Err(Error::Closed);
        };
        let standby = &mut self.standby;
        let heard = |changes, pid, refused| standby.heard(changes, pid, refused);
        let guest = sandbox.guest();
        // The other half of the memory is for the kernel. Neither of the two changes what the other keeps.
        let saved = guest.save(snapshot, self.limits.memory_bytes / 2);
        let (kept, saved) = tokio::join!(kernel.keep(request, heard), saved);
        let kept = kept
            .map_err(Error::from)
            .and_then(|kept| kept.map_err(|obstacle| CheckpointError::refused(action, &obstacle).into()));
        let mut kernel = match kept {
            Ok(kernel) => kernel,
            Err(error) => {
                if saved.is_ok() {
                    guest.discard(snapshot).await?;
                }
                return Err(error);
            }
        };
        self.standby.gave(kernel.pid().await);
        let (files, bytes) = match saved {
            Ok(saved) => saved,
            Err(error) if error.effect() == Effect::Destroys => return Err(error.into()),
            Err(error) => {
                let reason = error
                    .guest_refusal()
                    .map_or(error.to_string(), |(_, reason)| reason.to_owned());
                return Err(CheckpointError::Files { action, reason }.into());
            }
        };
        Ok((files, bytes, kernel, self.state(contents, journal)))
    }

    /// Returns the host's part of the state.
    pub(in crate::session) fn state(&self, contents: &Contents, journal: &Journal) -> State {
        State {
            standby: self.standby.of_a_copy(),
            lineage: journal.lineage.clone(),
            collected: contents.collected.clone(),
            layers: self.layers.clone(),
            chain: journal.chain.state(),
            inputs: contents
                .inputs
                .iter()
                .map(|input| input.name().to_owned())
                .collect(),
        }
    }

    /// Takes over the host's part of a state whose variables and files are there.
    pub(in crate::session) fn continue_from(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        state: State,
    ) {
        self.standby = state.standby;
        journal.lineage = state.lineage;
        contents.collected = state.collected;
        self.layers = state.layers;
        journal.chain.roll_back(state.chain);
        contents
            .inputs
            .retain(|input| state.inputs.iter().any(|name| name == input.name()));
        (self.has_variables, self.has_files) = (true, true);
    }

    pub(in crate::session) async fn forget_files(&self, snapshot: u64) -> Result<()> {
        match &self.sandbox {
            Some(sandbox) => Ok(sandbox.guest().discard(snapshot).await?),
            None => Ok(()),
        }
    }

    pub(in crate::session) fn has_checkpoints(&self) -> Result<()> {
        let backend = &self.shared.backend;
        if backend.lacks().contains(&Lack::Checkpoints) {
            return Err(CheckpointError::Unsupported {
                backend: backend.name(),
            }
            .into());
        }
        Ok(())
    }
}

impl Actor {
    pub(super) async fn checkpoint(&mut self, name: Option<String>) -> Result<NewCheckpoint> {
        self.runtime.has_checkpoints()?;
        if let Some(name) = &name {
            self.runtime.kept.check(name)?;
        }
        self.runtime.ready(&mut self.contents, &mut self.journal).await?;
        if let Some(id) = self.runtime.processes.running() {
            return Err(CheckpointError::refused(KEEP, &Obstacle::Process { id }).into());
        }
        let about = self.hold(KEEP, name, false).await?;
        self.journal.note_event(TimelineEvent::Checkpoint {
            checkpoint: about.id.clone(),
            name: about.name.clone(),
        });
        let mut evicted = None;
        if let Some(oldest) = self.runtime.kept.evict(MAX_CHECKPOINTS) {
            self.journal.note_event(TimelineEvent::CheckpointDropped {
                checkpoint: oldest.about.id.clone(),
            });
            self.runtime.forget_files(oldest.number).await?;
            evicted = Some(oldest.about);
        }
        Ok(NewCheckpoint {
            checkpoint: about,
            evicted,
        })
    }

    /// Keeps the state for an action, which is named in errors. The session is ready, and no
    /// process runs beside its cells.
    pub(in crate::session) async fn hold(
        &mut self,
        action: &'static str,
        name: Option<String>,
        of_try: bool,
    ) -> Result<Checkpoint> {
        let number = if of_try { OF_TRY } else { self.runtime.kept.next() };
        let (files, bytes, kernel, state) = self
            .runtime
            .copy_state(&mut self.contents, &mut self.journal, action, number)
            .await?;
        let about = Checkpoint {
            id: format!("c{number}"),
            name,
            parent: self.runtime.kept.parent.clone(),
            cell: self.journal.cells,
            created_unix_ms: clock::unix_millis(),
            files,
            bytes: bytes.saturating_add(kernel.bytes),
        };
        self.runtime.kept.add(about.clone(), number, kernel, state);
        Ok(about)
    }

    pub(super) async fn drop_checkpoint(&mut self, wanted: &str) -> Result<()> {
        self.runtime.has_checkpoints()?;
        let place = self.runtime.kept.find(wanted)?;
        let kept = self.runtime.kept.take(place);
        self.journal.note_event(TimelineEvent::CheckpointDropped {
            checkpoint: kept.about.id,
        });
        self.runtime.forget_files(kept.number).await
    }

    pub(super) async fn roll_back(&mut self, wanted: &str) -> Result<RolledBack> {
        self.runtime.has_checkpoints()?;
        if self.runtime.loss().is_some() {
            self.runtime.discard(&mut self.contents, &mut self.journal);
        }
        let place = self.runtime.kept.find(wanted)?;
        let about = self.runtime.kept.get(place).about.clone();
        match self.go_back(place).await {
            Ok(true) => {}
            Ok(false) => {
                let number = self.runtime.kept.take(place).number;
                self.runtime.forget_files(number).await?;
                return Err(CheckpointError::Ended { id: about.id }.into());
            }
            Err(reason) => return Err(CheckpointError::Lost { id: about.id, reason }.into()),
        }
        self.journal.note_event(TimelineEvent::RolledBack {
            checkpoint: about.id.clone(),
        });
        Ok(RolledBack {
            checkpoint: about,
            cell: self.journal.cells,
        })
    }

    /// Makes variables and files what they were, or ends the sandbox and returns the reason.
    /// Returns false, with nothing done, if code has ended the copy that has to go on.
    pub(in crate::session) async fn go_back(&mut self, place: usize) -> Result<bool, String> {
        if !self.runtime.processes.is_empty() {
            if !self.runtime.kept.kernel(place).is_there().await {
                return Ok(false);
            }
            self.runtime.processes.end_all().await;
        }
        let error = match self.switch_to(place).await {
            Ok(went_back) => return Ok(went_back),
            Err(error) => error,
        };
        let refusal = match &error {
            Error::Sandbox(error) => error.guest_refusal(),
            _ => None,
        };
        // Other errors may name what belongs to the host.
        let reason = refusal
            .map_or("the sandbox failed", |(_, reason)| reason)
            .to_owned();
        tracing::warn!(error = &error as &dyn std::error::Error, "a rollback failed");
        self.runtime.discard(&mut self.contents, &mut self.journal);
        Err(reason)
    }

    /// Stops the kernel and everything else, restores the files, and continues with the kept
    /// kernel, in this order: no code runs with files of one state and variables of another. What
    /// was stopped is killed last.
    async fn switch_to(&mut self, place: usize) -> Result<bool> {
        let sandbox = self.runtime.sandbox.as_ref().ok_or(Error::Closed)?;
        let spared = self.runtime.kept.pids().await;
        let Some(needed) = self.runtime.kept.kernel(place).pid().await else {
            return Ok(false);
        };
        let snapshot = self.runtime.kept.get(place).number;
        if !sandbox.guest().roll_back(snapshot, needed, &spared).await? {
            return Ok(false);
        }
        let ended = self.runtime.kernel.take();
        let ended = self.runtime.kept.switch(place, ended).ok_or(Error::Closed)?;
        self.runtime.kernel = Some(sandbox.roll_back(ended, self.runtime.kept.kernel(place)).await?);
        sandbox.guest().kill_stopped().await?;
        let state = self.runtime.kept.get(place).state.clone();
        self.runtime
            .continue_from(&mut self.contents, &mut self.journal, state);
        self.runtime.interrupts.unseen = false;
        self.runtime.show_processes();
        Ok(true)
    }
}
