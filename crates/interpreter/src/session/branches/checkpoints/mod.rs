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
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::session::Session;
use crate::session::request::Effects;

mod keep;
mod table;
pub mod tries;

pub use crate::checkpoint_error::{CheckpointError, MAX_CHECKPOINTS};
pub(in crate::session) use table::{Checkpoints, State};
pub(in crate::session) use tries::Trial;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// Id, which the session never uses again.
    pub id: String,
    /// Name, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the checkpoint that the session had made or gone back to last; absent if its variables
    /// did not come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Number of the last cell before it; 0 if none had run.
    pub cell: u64,
    /// Time at which it was made, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Number of files that it holds.
    pub files: u64,
    /// Estimate of the memory that it took up when it was made, in bytes. It grows with what later
    /// cells change.
    pub bytes: u64,
}

/// A checkpoint that was just made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NewCheckpoint {
    /// The checkpoint.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// The oldest checkpoint, if it was dropped because a session keeps at most 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Checkpoint>,
}

/// The result of a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RolledBack {
    /// The checkpoint, which is kept.
    pub checkpoint: Checkpoint,
    /// Number of the last cell that has run. The next cell gets the number after it.
    pub cell: u64,
}

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
