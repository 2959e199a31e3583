//! Reasons that a session could not be forked.

use cellblock_protocol::Obstacle;

/// Maximum number of sessions of one fork.
pub const MAX_FORKS: usize = 16;

/// Reason that a session could not be forked. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The backend has no forks.
    #[error(
        "forks are unavailable: the backend `{backend}` lacks them; use the backend `process` on this machine"
    )]
    Unsupported {
        /// Name of the backend.
        backend: &'static str,
    },
    /// The number of sessions is not possible.
    #[error("invalid count `{count}`: a fork makes 1 to {MAX_FORKS} sessions")]
    Count {
        /// The number.
        count: usize,
    },
    /// The session has something that cannot be moved.
    #[error("fork the session: it has {obstacle}, which cannot be moved to another sandbox; {remedy}")]
    Refused {
        /// Description of the obstacle.
        obstacle: String,
        /// Hint for removing it.
        remedy: &'static str,
    },
    /// A new sandbox could not take the state.
    #[error("fork the session: {reason}; no session was made")]
    Failed {
        /// Event that made the fork fail.
        reason: String,
    },
}

impl ForkError {
    /// Returns the refusal of a fork because of an obstacle.
    pub(crate) fn refused(obstacle: &Obstacle) -> Self {
        let remedy = match obstacle {
            Obstacle::SharedMemory
            | Obstacle::MappedFile
            | Obstacle::RemovedMapping
            | Obstacle::MissingMapping
            | Obstacle::SharedMapping
            | Obstacle::UnusualMapping
            | Obstacle::TooManyMappings => "delete what holds it, and try again",
            Obstacle::Volume
            | Obstacle::Egress
            | Obstacle::OwnRules
            | Obstacle::OwnFilter
            | Obstacle::UnknownLibrary
            | Obstacle::UnknownProcessor => "use a session without it",
            Obstacle::EndedKernel
            | Obstacle::UnreachableKernel { .. }
            | Obstacle::BusyKernel
            | Obstacle::NoCopy { .. }
            | Obstacle::NoSpareChannel
            | Obstacle::MissingDescriptor => "try again",
            _ => "end or close it, and try again",
        };
        Self::Refused {
            obstacle: obstacle.to_string(),
            remedy,
        }
    }

    /// Returns a word for the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "forks_unavailable",
            Self::Count { .. } => "fork_count",
            Self::Refused { .. } => "fork_refused",
            Self::Failed { .. } => "fork_failed",
        }
    }
}
