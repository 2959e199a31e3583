//! Errors below a session.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_protocol::Obstacle;

pub use crate::shortage::Shortage;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of Cellblock itself. User code that fails is never one of these.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] SandboxErrorKind);

/// The kinds, private to the crate: callers use [`Error::blame`], [`Error::retry`] and
/// [`Error::effect`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxErrorKind {
    #[error("{action}")]
    Io {
        action: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("start the launcher: {reason}")]
    Launch { reason: String },
    #[error("{reason}")]
    MissingProtection { reason: String },
    #[error("{action}: {reason}")]
    Launcher { action: &'static str, reason: String },
    #[error("the launcher exited and ended all its sandboxes; the next sandbox gets a new launcher")]
    LauncherGone,
    #[error("{what} was not ready within {} s", limit.as_secs_f32())]
    TooLate { what: &'static str, limit: Duration },
    #[error("a sandbox was not ready within {} s: {shortage}", limit.as_secs_f32())]
    NoRoom { limit: Duration, shortage: Shortage },
    #[error("the {who} broke the protocol: {reason}")]
    Protocol { who: &'static str, reason: String },
    #[error("the {who} is gone")]
    Gone { who: &'static str },
    #[error("the {who} ended in the middle of a frame")]
    Cut { who: &'static str },
    #[error("keep a large frame of the {who} in a temporary file below `{}`", directory.display())]
    Spill {
        who: &'static str,
        directory: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{action}: {reason}; no more processes are allowed: end some, or raise the limit (`ulimit -u` for \
         the user, `pids.max` for the cgroup)"
    )]
    Processes { action: &'static str, reason: String },
    #[error("all {limit} user ids of this process's sandboxes are in use; end some sandboxes first")]
    Full { limit: u32 },
    #[error("{action} `{path}` in the sandbox: {reason} ({code})")]
    Guest {
        action: &'static str,
        path: String,
        code: String,
        reason: String,
    },
    #[error(
        "cannot start the launcher: this program loads Cellblock as a shared library and cannot become \
         one; set the launcher to a `cellblock` executable"
    )]
    NoLauncher,
    #[error("move a kernel: it has {0}")]
    Immovable(Obstacle),
    #[error("{error}")]
    Backend {
        blame: Blame,
        retry: Retry,
        effect: Effect,
        error: Box<dyn StdError + Send + Sync>,
    },
    #[error("{0}")]
    Request(String),
}

/// The party that has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The caller made an invalid request.
    Caller,
    /// The policy requires something that this machine lacks.
    Policy,
    /// There is no free capacity now.
    Capacity,
    /// The sandbox or its backend failed.
    Backend,
    /// This process failed at something that it should be able to do.
    Internal,
}

/// Whether a retry makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It does not.
    Never,
    /// In a new sandbox.
    Fresh,
    /// After a delay.
    After(Duration),
}

/// Effect of an error on its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The sandbox continues.
    None,
    /// The sandbox must be destroyed.
    Destroys,
}

impl Error {
    /// Returns the party that has to act.
    pub fn blame(&self) -> Blame {
        match &self.0 {
            SandboxErrorKind::Io { .. } | SandboxErrorKind::Spill { .. } => Blame::Internal,
            SandboxErrorKind::Launch { .. }
            | SandboxErrorKind::Launcher { .. }
            | SandboxErrorKind::LauncherGone
            | SandboxErrorKind::Protocol { .. }
            | SandboxErrorKind::Gone { .. }
            | SandboxErrorKind::Cut { .. } => Blame::Backend,
            SandboxErrorKind::Backend { blame, .. } => *blame,
            SandboxErrorKind::MissingProtection { .. } => Blame::Policy,
            SandboxErrorKind::TooLate { .. }
            | SandboxErrorKind::NoRoom { .. }
            | SandboxErrorKind::Full { .. }
            | SandboxErrorKind::Processes { .. } => Blame::Capacity,
            SandboxErrorKind::Guest { .. }
            | SandboxErrorKind::NoLauncher
            | SandboxErrorKind::Immovable(_)
            | SandboxErrorKind::Request(_) => Blame::Caller,
        }
    }

    /// Returns whether a retry makes sense.
    pub fn retry(&self) -> Retry {
        match &self.0 {
            SandboxErrorKind::Launcher { .. }
            | SandboxErrorKind::LauncherGone
            | SandboxErrorKind::Protocol { .. }
            | SandboxErrorKind::Gone { .. }
            | SandboxErrorKind::Cut { .. } => Retry::Fresh,
            SandboxErrorKind::Backend { retry, .. } => *retry,
            SandboxErrorKind::TooLate { .. }
            | SandboxErrorKind::NoRoom { .. }
            | SandboxErrorKind::Full { .. }
            | SandboxErrorKind::Processes { .. } => Retry::After(Duration::from_secs(1)),
            SandboxErrorKind::Io { .. }
            | SandboxErrorKind::Spill { .. }
            | SandboxErrorKind::Launch { .. }
            | SandboxErrorKind::MissingProtection { .. }
            | SandboxErrorKind::Guest { .. }
            | SandboxErrorKind::NoLauncher
            | SandboxErrorKind::Immovable(_)
            | SandboxErrorKind::Request(_) => Retry::Never,
        }
    }

    /// Returns the error's effect on the sandbox.
    pub fn effect(&self) -> Effect {
        match &self.0 {
            SandboxErrorKind::Protocol { .. }
            | SandboxErrorKind::Gone { .. }
            | SandboxErrorKind::Cut { .. }
            | SandboxErrorKind::LauncherGone => Effect::Destroys,
            SandboxErrorKind::Backend { effect, .. } => *effect,
            SandboxErrorKind::Io { .. }
            | SandboxErrorKind::Spill { .. }
            | SandboxErrorKind::Full { .. }
            | SandboxErrorKind::Processes { .. }
            | SandboxErrorKind::Launch { .. }
            | SandboxErrorKind::Launcher { .. }
            | SandboxErrorKind::MissingProtection { .. }
            | SandboxErrorKind::TooLate { .. }
            | SandboxErrorKind::NoRoom { .. }
            | SandboxErrorKind::Guest { .. }
            | SandboxErrorKind::NoLauncher
            | SandboxErrorKind::Immovable(_)
            | SandboxErrorKind::Request(_) => Effect::None,
        }
    }

    /// Returns what there was too little of for another sandbox.
    pub fn shortage(&self) -> Option<Shortage> {
        match &self.0 {
            SandboxErrorKind::NoRoom { shortage, .. } => Some(*shortage),
            SandboxErrorKind::Full { .. } => Some(Shortage::Places),
            SandboxErrorKind::Processes { .. } => Some(Shortage::Processes),
            _ => None,
        }
    }

    /// Returns a guest's rejection: its code, and the reason.
    pub fn guest_refusal(&self) -> Option<(&str, &str)> {
        match &self.0 {
            SandboxErrorKind::Guest { code, reason, .. } => Some((code, reason)),
            _ => None,
        }
    }

    /// Returns the obstacle that keeps a kernel from being moved to another sandbox.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        match &self.0 {
            SandboxErrorKind::Immovable(obstacle) => Some(obstacle),
            _ => None,
        }
    }

    /// Returns the error that a backend of another crate reported with
    /// [`of_backend`](Self::of_backend), if it is of this type.
    pub fn backend_error<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.0 {
            SandboxErrorKind::Backend { error, .. } => error.downcast_ref(),
            _ => None,
        }
    }

    /// Returns whether the peer's process ended in the middle of a message, rather than sent an
    /// invalid one.
    pub fn is_cut(&self) -> bool {
        matches!(self.0, SandboxErrorKind::Cut { .. })
    }

    /// Returns whether a frame was lost because of this machine's disk; the following frames can
    /// still be read.
    pub fn is_spill(&self) -> bool {
        matches!(self.0, SandboxErrorKind::Spill { .. })
    }

    /// Returns whether a peer violated the protocol.
    pub fn is_protocol(&self) -> bool {
        matches!(self.0, SandboxErrorKind::Protocol { .. })
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(&self.0, SandboxErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Creates an error for a frame or message that violates the protocol.
    pub fn protocol(who: &'static str, reason: impl Into<String>) -> Self {
        SandboxErrorKind::Protocol {
            who,
            reason: reason.into(),
        }
        .into()
    }

    /// Creates an error for a peer that closed its channel.
    pub fn gone(who: &'static str) -> Self {
        SandboxErrorKind::Gone { who }.into()
    }

    /// Creates an error for a protection that the policy requires and that is not active.
    pub fn missing_protection(reason: impl Into<String>) -> Self {
        SandboxErrorKind::MissingProtection {
            reason: reason.into(),
        }
        .into()
    }

    /// Creates an error for something that did not happen in time.
    pub fn too_late(what: &'static str, limit: Duration) -> Self {
        SandboxErrorKind::TooLate { what, limit }.into()
    }

    /// Wraps an error of a backend in another crate with its meaning for the caller.
    pub fn of_backend(
        blame: Blame,
        retry: Retry,
        effect: Effect,
        error: impl StdError + Send + Sync + 'static,
    ) -> Self {
        SandboxErrorKind::Backend {
            blame,
            retry,
            effect,
            error: Box::new(error),
        }
        .into()
    }

    /// Creates an error for a request that cannot be served as it is.
    pub fn request(reason: impl Into<String>) -> Self {
        SandboxErrorKind::Request(reason.into()).into()
    }
}

impl SandboxErrorKind {
    /// Creates an error from a launcher's own description of its failed start.
    pub(crate) fn launch(reason: String) -> Self {
        if is_out_of_processes(&reason) {
            let action = "start the launcher";
            Self::Processes { action, reason }
        } else {
            Self::Launch { reason }
        }
    }

    /// Creates an error from a launcher's own description of a failed action.
    pub(crate) fn launcher(action: &'static str, reason: String) -> Self {
        if is_out_of_processes(&reason) {
            Self::Processes { action, reason }
        } else {
            Self::Launcher { action, reason }
        }
    }

    /// Creates an error for a process that failed to start.
    pub(crate) fn spawn(action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock => Self::Processes {
                action,
                reason: source.to_string(),
            },
            _ => Self::Io { action, source },
        }
    }
}

/// Launcher and template report their errors as text. They never wait, so `EAGAIN` always comes
/// from fork or clone.
fn is_out_of_processes(reason: &str) -> bool {
    reason.contains("Resource temporarily unavailable")
}

/// Adds the failed action to an I/O result.
pub trait DuringIo<T> {
    /// Adds the failed action, as in `make a pipe`.
    fn during(self, action: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> DuringIo<T> for std::result::Result<T, E> {
    fn during(self, action: &'static str) -> Result<T> {
        self.map_err(|source| {
            SandboxErrorKind::Io {
                action,
                source: source.into(),
            }
            .into()
        })
    }
}
