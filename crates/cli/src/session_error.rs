//! Errors between a command and a session.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::session_id::SessionId;

/// Most bytes of a message: two texts of the largest file that may be written, each byte escaped.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// Kind of service of a process in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// One session.
    Session,
    /// Sandboxes for commands that come and go.
    Warm,
}

impl HostKind {
    /// The command that starts and stops such hosts.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Warm => "warm",
        }
    }

    /// The directory of all such hosts below the home.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Session => "sessions",
            Self::Warm => "warm",
        }
    }

    /// The host with this id, in messages.
    fn named(self, id: &SessionId) -> String {
        match self {
            Self::Session => format!("session `{id}`"),
            Self::Warm => format!("warm host `{id}`"),
        }
    }

    const fn host(self) -> &'static str {
        match self {
            Self::Session => "session's host",
            Self::Warm => "warm host",
        }
    }
}

/// Reason that a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// Not the form of an id.
    #[error("`{}` is not a session's id, which has 20 characters of 0-9 and a-f", text.escape_debug())]
    NoId { text: String },
    /// No session has this id.
    #[error("there is no session `{id}`")]
    Unknown { id: SessionId },
    /// The host was killed, or the machine was restarted.
    #[error("session `{id}` is over: its host process is gone{}", last_words(log))]
    Gone { id: SessionId, log: String },
    /// The host is there and says nothing.
    #[error("{} has not answered within {} s", kind.named(id), after.as_secs())]
    Silent {
        kind: HostKind,
        id: SessionId,
        after: Duration,
    },
    /// The host has ended while it was asked.
    #[error("{} ended before it answered", kind.named(id))]
    Ended { kind: HostKind, id: SessionId },
    /// The host did not come so far as to serve.
    #[error("the {} ended before it could serve{}", kind.host(), last_words(log))]
    Stillborn { kind: HostKind, log: String },
    /// More than one message may have.
    #[error("the call has {bytes} bytes as JSON, the limit is {MAX_MESSAGE}; write large files in parts")]
    TooLarge { bytes: usize },
    /// Somebody else could reach the sockets.
    #[error("`{}` is not a directory that only the caller, user {user}, can enter", path.display())]
    NotPrivate { path: PathBuf, user: u32 },
    /// `session host` or `warm host` was called by hand.
    #[error("a host is started by `cellblock {} start`, not by itself", kind.command())]
    NotStarted { kind: HostKind },
}

impl SessionError {
    /// The exit code.
    pub(crate) const fn exit_code(&self) -> ExitCode {
        match self {
            Self::NoId { .. } | Self::Unknown { .. } | Self::TooLarge { .. } | Self::NotStarted { .. } => {
                ExitCode::Refused
            }
            Self::Gone { .. } | Self::Silent { .. } | Self::Ended { .. } | Self::Stillborn { .. } => {
                ExitCode::Backend
            }
            Self::NotPrivate { .. } => ExitCode::Policy,
        }
    }

    /// Suggested fix.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::NoId { .. } => "`cellblock session start` prints the id, `cellblock session list` shows \
                                  those that run"
                .to_owned(),
            Self::Unknown { .. } => {
                "one ends when it is stopped and after its idle time; `cellblock session list` shows \
                 those that run"
                    .to_owned()
            }
            Self::Ended {
                kind: HostKind::Warm, ..
            } => "`cellblock warm start` starts another".to_owned(),
            Self::Gone { .. } | Self::Ended { .. } => {
                "the files of its sandbox are lost, what it had saved on the host is kept; start another \
                 with `cellblock session start`"
                    .to_owned()
            }
            Self::Silent {
                kind: HostKind::Warm, ..
            } => "`cellblock warm stop` ends it in any case".to_owned(),
            Self::Silent { id, .. } => format!("`cellblock session stop {id}` ends it in any case"),
            Self::TooLarge { .. } => "let a script in the sandbox write what is larger".to_owned(),
            Self::NotPrivate { path, .. } => {
                format!(
                    "`chmod 700 {}`, or set CELLBLOCK_HOME to a directory of your own",
                    path.display()
                )
            }
            Self::Stillborn { .. } => "`cellblock doctor` checks this machine".to_owned(),
            Self::NotStarted { kind } => format!("run `cellblock {} start`", kind.command()),
        }
    }
}

fn last_words(log: &str) -> String {
    match log.trim() {
        "" => String::new(),
        log => format!("; its last words: {log}"),
    }
}

/// An error of the host as it crosses the socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireError {
    /// The message and its causes, outermost first.
    pub(crate) messages: Vec<String>,
    /// Suggested fix.
    pub(crate) hints: Vec<String>,
    /// Exit code of the command.
    pub(crate) code: ExitCode,
}

impl WireError {
    /// Describes an error for the command that receives it from a host.
    pub(crate) fn new(error: &Error) -> Self {
        Self {
            messages: error.chain(),
            hints: error.hints(),
            code: error.exit_code(),
        }
    }
}
