//! Descriptions of checkpoints.

use serde::{Deserialize, Serialize};

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
