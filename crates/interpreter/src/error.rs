//! Errors around a cell. A cell that fails is not among it: that is an [`Execution`](crate::Execution).

use std::time::Duration;

use crate::checkpoint_error::CheckpointError;
use crate::fork_error::ForkError;
use crate::port_error::PortError;
use crate::process_error::ProcessError;

pub use cellblock_sandbox::Error as SandboxError;
pub use cellblock_sandbox::error::{Blame, Effect, Retry, Shortage};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason that Cellblock could not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sandbox, or what makes it.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Building or opening an image, or installing requirements.
    #[error(transparent)]
    Image(#[from] cellblock_image::ImageError),
    /// Packages that a cell asked for.
    #[error(transparent)]
    Requirements(#[from] cellblock_image::layer::LayerError),
    /// Storing an artifact.
    #[error("store an artifact")]
    Store(#[from] cellblock_artifact::ArtifactError),
    /// The kernel sent an output that is not what it says.
    #[error("decode an output of the kernel")]
    Output(#[from] crate::output::OutputError),
    /// A large output or file could not be kept on its way to the store.
    #[error("keep a file from the sandbox")]
    Spool(#[source] std::io::Error),
    /// Recording a tool result, or reading one.
    #[error(transparent)]
    Alias(#[from] crate::alias::AliasError),
    /// A skill that cannot be read or stored.
    #[error(transparent)]
    Skill(#[from] crate::skill::SkillError),
    /// An input that cannot be bound.
    #[error("bind input `{name}`: {reason}")]
    Input {
        /// Its name.
        name: String,
        /// Description of the problem, and what to do.
        reason: String,
    },
    /// An argument of a tool that cannot be used.
    #[error("`{name}`: {reason}")]
    Argument {
        /// Its name.
        name: &'static str,
        /// Whether it was not given at all.
        missing: bool,
        /// Description of the problem, and what to do.
        reason: String,
    },
    /// An image that holds what a derivation must not have.
    #[error(
        "image `{image}` holds network clients, which a derivation must not have: {found}; build one \
         without them"
    )]
    Clients {
        /// The image's name.
        image: String,
        /// Clients that were found, and where.
        found: String,
    },
    /// A file that was asked for before there was a sandbox that could have it.
    #[error("find `{path}`: nothing has run in this session yet")]
    NoFile {
        /// The path in the sandbox.
        path: String,
    },
    /// A process beside cells that could not be started or used.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A port of a session that could not be reached.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A checkpoint of a session that could not be made or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A session that could not be forked.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The proxy of a session with `network: egress` could not be made.
    #[cfg(feature = "egress")]
    #[error("make the session's proxy")]
    Egress(#[from] cellblock_egress::EgressError),
    /// Packages took too long to install.
    #[error(
        "packages took longer than {limit} s to install; require fewer packages at once, or use \
         what is installed"
    )]
    Installing {
        /// Limit in seconds.
        limit: f64,
    },
    /// Too many conversions of stored data wait for their turn.
    #[error(
        "too many requests for rows, exports and pictures wait for their turn: the limit is {limit}; send \
         the request again in 1 s"
    )]
    Conversions {
        /// Maximum number that may wait.
        limit: usize,
    },
    /// Something that was asked for cannot be.
    #[error("{0}")]
    Request(String),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
}

impl Error {
    /// Returns the party that has to act.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Sandbox(error) => error.blame(),
            Self::Image(error) if error.is_callers() => Blame::Caller,
            Self::Requirements(error) if error.is_callers() => Blame::Caller,
            Self::Output(error) if error.is_from_the_kernel() => Blame::Backend,
            Self::Skill(error) if error.is_callers() => Blame::Caller,
            Self::Image(_)
            | Self::Requirements(_)
            | Self::Store(_)
            | Self::Spool(_)
            | Self::Skill(_)
            | Self::Output(_) => Blame::Internal,
            #[cfg(feature = "egress")]
            Self::Egress(_) => Blame::Internal,
            Self::Alias(error) if error.code().is_none() => Blame::Internal,
            Self::Clients { .. } => Blame::Policy,
            Self::Conversions { .. } => Blame::Capacity,
            Self::Alias(_)
            | Self::Argument { .. }
            | Self::Input { .. }
            | Self::NoFile { .. }
            | Self::Process(_)
            | Self::Port(_)
            | Self::Checkpoint(_)
            | Self::Fork(_)
            | Self::Installing { .. }
            | Self::Request(_)
            | Self::Closed => Blame::Caller,
        }
    }

    /// Returns what there was too little of for another sandbox.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Sandbox(error) => error.shortage(),
            _ => None,
        }
    }

    /// Returns the refusal of a sandbox about a file: a word for the kind of refusal, such as `not_found`,
    /// and the reason.
    pub fn refusal(&self) -> Option<(&str, &str)> {
        match self {
            Self::Sandbox(error) => error.guest_refusal(),
            Self::NoFile { .. } => Some(("not_found", "nothing has run in this session yet")),
            _ => None,
        }
    }

    /// The name of the other process of this machine that had the sandbox and is gone, such as a
    /// warm host, if that was the error.
    pub fn lost_process(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "remote")]
            Self::Sandbox(error) => cellblock_remote::lost_process(error),
            _ => None,
        }
    }

    /// Returns whether a full disk of the host is the cause.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Image(error) => error.is_disk_full(),
            Self::Requirements(error) => error.is_disk_full(),
            _ => cellblock_artifact::is_disk_full(self),
        }
    }

    /// Whether trying again makes sense.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Sandbox(error) => error.retry(),
            Self::Conversions { .. } => Retry::After(Duration::from_secs(1)),
            Self::Output(error) if error.is_from_the_kernel() => Retry::Fresh,
            #[cfg(feature = "egress")]
            Self::Egress(_) => Retry::Never,
            Self::Output(_)
            | Self::Image(_)
            | Self::Requirements(_)
            | Self::Store(_)
            | Self::Spool(_)
            | Self::Skill(_)
            | Self::Alias(_)
            | Self::Clients { .. }
            | Self::Argument { .. }
            | Self::Input { .. }
            | Self::NoFile { .. }
            | Self::Process(_)
            | Self::Port(_)
            | Self::Checkpoint(_)
            | Self::Fork(_)
            | Self::Installing { .. }
            | Self::Request(_)
            | Self::Closed => Retry::Never,
        }
    }
}
