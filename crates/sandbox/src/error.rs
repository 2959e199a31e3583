//! What can go wrong below a session.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why Cellblock could not do its part. User code that fails is never one of these.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

/// The kinds, private to the crate: callers ask [`Error::blame`], [`Error::retry`] and [`Error::effect`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
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
    #[error("the launcher has ended, and every sandbox with it; the next sandbox gets a new launcher")]
    LauncherGone,
    #[error("{what} was not ready within {} s", limit.as_secs_f32())]
    TooLate { what: &'static str, limit: Duration },
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
        "{action}: {reason}; no more processes are allowed: end some, or raise the limit (`ulimit -u` for the user, \
         `pids.max` for the cgroup)"
    )]
    Processes { action: &'static str, reason: String },
    #[error("all {limit} user ids of this process's sandboxes are taken; end some first")]
    Full { limit: u32 },
    #[error("{action} `{path}` in the sandbox: {reason} ({code})")]
    Guest {
        action: &'static str,
        path: String,
        code: String,
        reason: String,
    },
    #[error(
        "this program cannot become a launcher: call `boot()` as the first statement of its `main`, \
         or name a `cellblock` executable in the configuration"
    )]
    NotBooted,
    #[error("connect to the sandboxes at `{address}`: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("connect to the sandboxes at `{address}`: it answered with HTTP status {status}{hint}")]
    RemoteStatus {
        address: String,
        status: u16,
        hint: &'static str,
    },
    #[error("the connection to the other side was lost: {reason}; the sandbox has ended")]
    RemoteLost { reason: String },
    #[error("the remote could not {action}: {reason}")]
    Refused {
        action: &'static str,
        blame: Blame,
        retry: Retry,
        destroys: bool,
        reason: String,
    },
    #[error("{0}")]
    Request(String),
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The caller asked for something that cannot be.
    Caller,
    /// The policy demands what this machine does not have.
    Policy,
    /// There is no room now.
    Capacity,
    /// The sandbox or what makes it failed.
    Backend,
    /// This process could not do something that it should be able to.
    Internal,
}

/// Whether trying again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No.
    Never,
    /// In a fresh sandbox.
    Fresh,
    /// After a while.
    After(Duration),
}

/// What an error means for the sandbox that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It goes on.
    None,
    /// It must be destroyed.
    Destroys,
}

impl Error {
    /// Who has to act.
    pub fn blame(&self) -> Blame {
        match &self.0 {
            Kind::Io { .. } | Kind::Spill { .. } => Blame::Internal,
            Kind::Launch { .. }
            | Kind::Launcher { .. }
            | Kind::LauncherGone
            | Kind::Protocol { .. }
            | Kind::Gone { .. }
            | Kind::Unreachable { .. }
            | Kind::RemoteLost { .. }
            | Kind::Cut { .. } => Blame::Backend,
            Kind::RemoteStatus { status, .. } => match status {
                401 | 403 => Blame::Policy,
                429 | 503 => Blame::Capacity,
                _ => Blame::Backend,
            },
            Kind::Refused { blame, .. } => *blame,
            Kind::MissingProtection { .. } => Blame::Policy,
            Kind::TooLate { .. } | Kind::Full { .. } | Kind::Processes { .. } => Blame::Capacity,
            Kind::Guest { .. } | Kind::NotBooted | Kind::Request(_) => Blame::Caller,
        }
    }

    /// Whether trying again makes sense.
    pub fn retry(&self) -> Retry {
        match &self.0 {
            Kind::Launcher { .. }
            | Kind::LauncherGone
            | Kind::Protocol { .. }
            | Kind::Gone { .. }
            | Kind::RemoteLost { .. }
            | Kind::Cut { .. } => Retry::Fresh,
            Kind::RemoteStatus { status, .. } if !matches!(status, 429 | 500..) => Retry::Never,
            Kind::Refused { retry, .. } => *retry,
            // Connecting was tried several times already.
            Kind::Unreachable { .. } | Kind::RemoteStatus { .. } => Retry::After(Duration::from_secs(1)),
            Kind::TooLate { .. } | Kind::Full { .. } | Kind::Processes { .. } => {
                Retry::After(Duration::from_secs(1))
            }
            Kind::Io { .. }
            | Kind::Spill { .. }
            | Kind::Launch { .. }
            | Kind::MissingProtection { .. }
            | Kind::Guest { .. }
            | Kind::NotBooted
            | Kind::Request(_) => Retry::Never,
        }
    }

    /// What it means for the sandbox.
    pub fn effect(&self) -> Effect {
        match &self.0 {
            Kind::Protocol { .. }
            | Kind::Gone { .. }
            | Kind::Cut { .. }
            | Kind::RemoteLost { .. }
            | Kind::Refused { destroys: true, .. }
            | Kind::LauncherGone => Effect::Destroys,
            Kind::Unreachable { .. }
            | Kind::RemoteStatus { .. }
            | Kind::Refused { .. }
            | Kind::Io { .. }
            | Kind::Spill { .. }
            | Kind::Full { .. }
            | Kind::Processes { .. }
            | Kind::Launch { .. }
            | Kind::Launcher { .. }
            | Kind::MissingProtection { .. }
            | Kind::TooLate { .. }
            | Kind::Guest { .. }
            | Kind::NotBooted
            | Kind::Request(_) => Effect::None,
        }
    }

    /// What a guest refused: a word for the kind of refusal, and the reason.
    pub fn guest_refusal(&self) -> Option<(&str, &str)> {
        match &self.0 {
            Kind::Guest { code, reason, .. } => Some((code, reason)),
            _ => None,
        }
    }

    /// The HTTP status with which a server refused to speak the protocol of sandboxes, if that is what went wrong.
    pub fn http_status(&self) -> Option<u16> {
        match &self.0 {
            Kind::RemoteStatus { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the peer's process ended while it spoke, rather than said something wrong.
    pub fn is_cut(&self) -> bool {
        matches!(self.0, Kind::Cut { .. })
    }

    /// Whether a frame was lost to this machine's disk; what comes after it can still be read.
    pub fn is_spill(&self) -> bool {
        matches!(self.0, Kind::Spill { .. })
    }

    pub(crate) fn is_protocol(&self) -> bool {
        matches!(self.0, Kind::Protocol { .. })
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self.0, Kind::Unreachable { .. })
    }

    pub(crate) fn is_remote_lost(&self) -> bool {
        matches!(self.0, Kind::RemoteLost { .. })
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(&self.0, Kind::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// A frame or message that its sender should not have sent.
    pub fn protocol(who: &'static str, reason: impl Into<String>) -> Self {
        Kind::Protocol {
            who,
            reason: reason.into(),
        }
        .into()
    }

    /// A peer that closed its channel.
    pub fn gone(who: &'static str) -> Self {
        Kind::Gone { who }.into()
    }

    /// A request that cannot be served as it is.
    pub fn request(reason: impl Into<String>) -> Self {
        Kind::Request(reason.into()).into()
    }
}

impl Kind {
    /// Why a launcher did not start, in its own words.
    pub(crate) fn launch(reason: String) -> Self {
        if is_out_of_processes(&reason) {
            let action = "start the launcher";
            Self::Processes { action, reason }
        } else {
            Self::Launch { reason }
        }
    }

    /// What a launcher could not do, in its own words.
    pub(crate) fn launcher(action: &'static str, reason: String) -> Self {
        if is_out_of_processes(&reason) {
            Self::Processes { action, reason }
        } else {
            Self::Launcher { action, reason }
        }
    }

    /// A process that could not be started.
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

/// Launcher and template tell their errors as text. What they do never waits, so `EAGAIN` is always the answer of fork or clone.
fn is_out_of_processes(reason: &str) -> bool {
    reason.contains("Resource temporarily unavailable")
}

/// Adds the failed action to an I/O result.
pub(crate) trait During<T> {
    fn during(self, action: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> During<T> for std::result::Result<T, E> {
    fn during(self, action: &'static str) -> Result<T> {
        self.map_err(|source| {
            Kind::Io {
                action,
                source: source.into(),
            }
            .into()
        })
    }
}
