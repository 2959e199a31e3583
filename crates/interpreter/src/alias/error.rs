//! Errors of recorded results. Most of them are for a model, which can repair them.

use std::fmt;

use cellblock_artifact::ArtifactError;

use crate::rejection::Rejection;
use crate::render::plain::line;

/// Maximum number of other results that a message lists.
const LISTED: usize = 20;
/// Maximum number of characters of a foreign name that a message repeats.
const SHOWN: usize = 80;

/// The reason why a result could not be recorded or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AliasError {
    /// No result has this alias.
    #[error("no result is recorded as `{alias}`; {}", listing(known))]
    Unknown {
        /// The requested alias.
        alias: String,
        /// Existing aliases, in the order of their recording.
        known: Vec<String>,
    },
    /// A tool's result is not JSON.
    #[error(
        "could not record the result of `{tool}`: it is not a JSON document; values nested deeper than \
         127 levels, NaN and infinities are none"
    )]
    Json {
        /// Name of the tool.
        tool: String,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// A table does not match its format.
    #[error("could not record the table of `{tool}`: {what}; give a whole Arrow IPC or Parquet file")]
    Table {
        /// Name of the tool.
        tool: String,
        /// The problem.
        what: String,
    },
    /// One result is too large.
    #[error(
        "the result of `{tool}` has {actual} bytes, the limit for one result is {limit}; request a \
         smaller part of it"
    )]
    TooLarge {
        /// Name of the tool.
        tool: String,
        /// Maximum size of one result in bytes.
        limit: u64,
        /// Actual size in bytes.
        actual: u64,
    },
    /// All results together are too large.
    #[error(
        "with the result of `{tool}` all results would have {actual} bytes, the limit is {limit}; \
         continue with the recorded results"
    )]
    Full {
        /// Name of the tool.
        tool: String,
        /// Maximum size of all results in bytes.
        limit: u64,
        /// Size of all results including this one.
        actual: u64,
    },
    /// There are too many results.
    #[error("{limit} results are recorded, which is the limit; continue with the recorded results")]
    TooMany {
        /// Maximum number of results.
        limit: usize,
    },
    /// A value cannot be bound to the name.
    #[error(
        "`{name}` {fault}; use a name such as `sales_2024`: ASCII letters, digits and `_`, a letter first"
    )]
    Name {
        /// The name, escaped and cut.
        name: String,
        /// The problem.
        fault: NameFault,
    },
    /// The store of results was closed.
    #[error("results are no longer recorded here; the turn has ended")]
    Closed,
    /// A saved list of results cannot be used.
    #[error("could not read the saved list of results; record them again")]
    Manifest(#[source] serde_json::Error),
    /// The file changed while it was recorded.
    #[error("the file of `{tool}` changed while it was recorded; record it when nothing writes to it")]
    Changed {
        /// Name of the tool.
        tool: String,
    },
    /// A file cannot be read, or a temporary one cannot be written.
    #[error("could not use a file of a result")]
    File(#[source] std::io::Error),
    /// The artifact store failed.
    #[error("could not use the store of results")]
    Store(#[from] ArtifactError),
}

/// The reason why no value can be bound to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFault {
    /// The name is not a plain identifier.
    NotAnIdentifier,
    /// The name is a keyword.
    Keyword,
    /// The name is a builtin.
    Builtin,
    /// The prelude binds the name.
    Prelude,
    /// Another result has or had the name.
    Taken,
    /// The name is requested twice.
    Twice,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnIdentifier => "is not a valid Python identifier",
            Self::Keyword => "is a keyword of Python",
            Self::Builtin => "is a builtin of Python",
            Self::Prelude => "is a library or a helper in cells",
            Self::Taken => "is the alias of another result",
            Self::Twice => "is given twice",
        })
    }
}

impl AliasError {
    pub(super) fn name(name: &str, fault: NameFault) -> Self {
        Self::Name {
            name: shown(name),
            fault,
        }
    }

    /// Returns the code of a repairable mistake; nothing if Cellblock failed.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unknown { .. } => Some("unknown_alias"),
            Self::Json { .. } | Self::Table { .. } | Self::Changed { .. } => Some("unreadable_result"),
            Self::TooLarge { .. } => Some("result_too_large"),
            Self::Full { .. } | Self::TooMany { .. } => Some("results_full"),
            Self::Name { .. } => Some("invalid_name"),
            Self::Closed => Some("results_closed"),
            Self::Manifest(_) | Self::File(_) | Self::Store(_) => None,
        }
    }

    /// Converts a repairable error to a rejection of a field in a model's request; returns other
    /// errors unchanged.
    pub fn into_rejection(self, field: impl Into<String>) -> Result<Rejection, Self> {
        let Some(code) = self.code() else {
            return Err(self);
        };
        let rejection = Rejection::of_field(code, field, self.to_string());
        Ok(match self {
            Self::Unknown { known, .. } => rejection.with_valid(known),
            _ => rejection,
        })
    }
}

/// Formats a foreign name for a message.
pub(super) fn shown(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN).collect();
    line(&cut)
}

fn listing(known: &[String]) -> String {
    if known.is_empty() {
        return "none is recorded yet".to_owned();
    }
    let listed: Vec<_> = known.iter().rev().take(LISTED).rev().cloned().collect();
    let left_out = known.len() - listed.len();
    let before = if left_out > 0 {
        format!("{left_out} earlier ones and ")
    } else {
        String::new()
    };
    format!("recorded are {before}{}", listed.join(", "))
}
