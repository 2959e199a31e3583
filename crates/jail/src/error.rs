//! Errors of confinement.

use std::io;
use std::path::{Path, PathBuf};

use crate::protection::Protection;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A confinement step that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call without a path failed.
    #[error("{action}")]
    Step {
        /// Failed action, as a lowercase fragment.
        action: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A system call on a path failed.
    #[error("{action} `{path}`")]
    Path {
        /// Failed action, as a lowercase fragment.
        action: &'static str,
        /// Path that the action was applied to.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A protection that the policy requires is unavailable.
    #[error("protection `{protection}` is not available: {reason}")]
    Missing {
        /// The protection.
        protection: Protection,
        /// Reason that it is missing, and what it needs.
        reason: String,
    },
    /// A child process reported a failure of its own setup.
    #[error("{0}")]
    Child(String),
    /// A filter failed to compile.
    #[error("compile the seccomp filter: {0}")]
    Filter(String),
    /// A Landlock rule set could not be created.
    #[error("build the Landlock rule set")]
    Landlock(#[from] landlock::RulesetError),
    /// A control message is not valid JSON.
    #[error("read a control message")]
    Message(#[from] serde_json::Error),
}

/// Adds the failed action to a system call's result.
pub trait SyscallResult<T> {
    /// Adds the name of the action.
    fn during(self, action: &'static str) -> Result<T>;
    /// Adds the name of the action and the path.
    fn during_on(self, action: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> SyscallResult<T> for std::result::Result<T, E> {
    fn during(self, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Step {
            action,
            source: source.into(),
        })
    }

    fn during_on(self, action: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|source| Error::Path {
            action,
            path: path.as_ref().to_owned(),
            source: source.into(),
        })
    }
}

/// Formats the whole chain of an error on one line, for a message that crosses a process boundary.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
