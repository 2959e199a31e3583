//! Reasons that a checkpoint could not be made or used.

use cellblock_protocol::Obstacle;

/// Maximum number of checkpoints of a session.
pub const MAX_CHECKPOINTS: usize = 8;
/// Maximum number of characters of a checkpoint's name.
pub(crate) const MAX_NAME: usize = 64;

/// Reason that a checkpoint could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The backend has none.
    #[error(
        "checkpoints are unavailable: the backend `{backend}` lacks them; use the backend `process` on \
         this machine"
    )]
    Unsupported {
        /// Name of the backend.
        backend: &'static str,
    },
    /// The session has something that a checkpoint cannot hold.
    #[error("{action}: the session has {obstacle}, which a checkpoint cannot hold; {remedy}")]
    Refused {
        /// Action that needs the checkpoint.
        action: &'static str,
        /// Description of the obstacle.
        obstacle: String,
        /// Hint for removing it.
        remedy: &'static str,
    },
    /// The files cannot be saved.
    #[error("{action}: save the files: {reason}; remove what is not needed, and try again")]
    Files {
        /// Action that needs the checkpoint.
        action: &'static str,
        /// File, and what is wrong with it.
        reason: String,
    },
    /// The name cannot be used.
    #[error(
        "invalid checkpoint name `{name}`: use 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`, and not \
         the form of an id such as `c1`"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// Another checkpoint has the name.
    #[error("a checkpoint named `{name}` exists; use another name, or drop it first")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// There is no such checkpoint.
    #[error("find checkpoint `{id}`: this session has no such checkpoint; it has {kept}")]
    NotFound {
        /// The id or name.
        id: String,
        /// Those that it has.
        kept: String,
    },
    /// Code of the session has ended the copy.
    #[error(
        "roll back to checkpoint `{id}`: code of this session has ended or stopped the process that held \
         it; the session is as it was, without this checkpoint"
    )]
    Ended {
        /// The id.
        id: String,
    },
    /// The rollback failed on its way.
    #[error(
        "roll back to checkpoint `{id}`: {reason}; the sandbox was ended, and all variables, files and \
         checkpoints are gone"
    )]
    Lost {
        /// The id.
        id: String,
        /// Event that caused the loss.
        reason: String,
    },
    /// The session has a try that was neither kept nor discarded.
    #[error(
        "this session has an undecided try (cell {cell}), of which nothing counts yet: keep it or discard \
         it first"
    )]
    Undecided {
        /// Number of its cell.
        cell: u64,
    },
    /// There is no try to decide about.
    #[error("decide a try: this session has no undecided try; try a cell first")]
    NoTry,
    /// Code of the try has ended the copy that held the state before it.
    #[error(
        "discard the try of cell {cell}: its code has ended or stopped the process that held the state \
         before it; keep the try, or end the session"
    )]
    TryEnded {
        /// Number of its cell.
        cell: u64,
    },
    /// The state before a try could not be brought back.
    #[error(
        "discard the try of cell {cell}: {reason}; the sandbox was ended, and all variables, files and \
         checkpoints are gone"
    )]
    TryLost {
        /// Number of its cell.
        cell: u64,
        /// Event that caused the loss.
        reason: String,
    },
}

impl CheckpointError {
    /// Returns the refusal of an action because of an obstacle.
    pub(crate) fn refused(action: &'static str, obstacle: &Obstacle) -> Self {
        let remedy = match obstacle {
            Obstacle::PythonThreads | Obstacle::Threads { .. } | Obstacle::ThreadLimit => {
                "stop them, or reset the session and do without the library that started them"
            }
            Obstacle::ChildProcesses | Obstacle::Process { .. } => "wait for it to end, or end it",
            Obstacle::LockedFile
            | Obstacle::RemovedFile
            | Obstacle::SharedFile
            | Obstacle::MappedFile
            | Obstacle::HighDescriptor { .. } => "close it, or remove it",
            Obstacle::EndedKernel
            | Obstacle::UnreachableKernel { .. }
            | Obstacle::BusyKernel
            | Obstacle::NoCopy { .. }
            | Obstacle::NoSpareChannel
            | Obstacle::MissingDescriptor => "try again",
            _ => "close it, or delete what holds it, and try again",
        };
        Self::Refused {
            action,
            obstacle: obstacle.to_string(),
            remedy,
        }
    }

    /// Returns a word for the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "checkpoints_unavailable",
            Self::Refused { .. } => "checkpoint_refused",
            Self::Files { .. } => "checkpoint_files",
            Self::InvalidName { .. } => "checkpoint_name",
            Self::NameTaken { .. } => "checkpoint_exists",
            Self::NotFound { .. } => "checkpoint_not_found",
            Self::Ended { .. } => "checkpoint_ended",
            Self::Lost { .. } => "checkpoint_lost",
            Self::Undecided { .. } => "try_undecided",
            Self::NoTry => "try_not_found",
            Self::TryEnded { .. } => "try_ended",
            Self::TryLost { .. } => "try_lost",
        }
    }
}
