//! Checkpoints of a session: its variables and files at one moment, to which it can go back any
//! number of times.
//!
//! ```text
//! kernel ──checkpoint──> kept copy of the kernel  +  snapshot of the files in the guest
//!                               │ roll back
//!                               └──> everything else is killed, the files are restored, the copy is the kernel and is copied again later
//! ```
//!
//! A rollback either brings back both variables and files or ends the sandbox: the session never
//! has some of each.

use std::future::ready;

use futures_util::FutureExt as _;

use crate::error::Result;
use crate::session::Session;
use crate::session::effects::Effects;

mod checkpoint;
mod keep;
pub mod rehearsals;
mod table;
pub mod tries;

pub use crate::checkpoint_error::{CheckpointError, MAX_CHECKPOINTS};
pub use checkpoint::{Checkpoint, NewCheckpoint, RolledBack};
pub(in crate::session) use table::{Checkpoints, State, Trial};

impl Session {
    /// Keeps the session's variables and files as they are now. A session keeps at most
    /// [`MAX_CHECKPOINTS`]; the oldest makes room.
    ///
    /// What cannot be kept, such as threads, is reported as a [`CheckpointError`] before anything happens.
    pub async fn checkpoint(&self, name: Option<String>) -> Result<NewCheckpoint> {
        self.ask(Effects::USE, move |actor| actor.checkpoint(name).boxed())
            .await
    }

    /// Returns the session's checkpoints, oldest first.
    pub async fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        self.ask(Effects::NONE, |actor| {
            ready(Ok(actor.runtime.kept.list())).boxed()
        })
        .await
    }

    /// Makes variables and files what they were at a checkpoint, given by its id or name. Ends all
    /// [processes](Self::processes). All checkpoints are kept, also those made later.
    pub async fn roll_back(&self, checkpoint: impl Into<String>) -> Result<RolledBack> {
        let checkpoint = checkpoint.into();
        self.ask(Effects::SAVED, move |actor| {
            async move { actor.roll_back(&checkpoint).await }.boxed()
        })
        .await
    }

    /// Drops a checkpoint, given by its id or name.
    pub async fn drop_checkpoint(&self, checkpoint: impl Into<String>) -> Result<()> {
        let checkpoint = checkpoint.into();
        self.ask(Effects::USE, move |actor| {
            async move { actor.drop_checkpoint(&checkpoint).await }.boxed()
        })
        .await
    }
}
