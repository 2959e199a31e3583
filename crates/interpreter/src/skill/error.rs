//! Errors of skills.

use std::io;

use cellblock_artifact::ArtifactError;
use cellblock_protocol::text::acts;

/// Maximum number of characters of a path in a message.
const SHOWN: usize = 100;

/// A skill that cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The upload is not a valid skill, for the reason given.
    #[error("{0}")]
    Invalid(String),
    /// A file of the host could not be read or written.
    #[error("could not {action}: {source}")]
    File {
        /// The action that failed.
        action: String,
        /// Its cause.
        source: io::Error,
    },
    /// The artifact store failed.
    #[error("the artifact store failed")]
    Store(#[from] ArtifactError),
}

impl SkillError {
    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    pub(super) fn file(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::File { action, source }
    }

    /// Returns whether the sender of the skill has to act, rather than the operator of this host.
    pub const fn is_callers(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// Returns a path for a message: short, and without characters that act on a terminal.
pub(super) fn shown(path: &str) -> String {
    let mut shown = String::new();
    for character in path.chars().take(SHOWN) {
        if acts(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if path.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
