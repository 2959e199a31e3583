//! What can go wrong with recorded results. Most of it is told to a model, which can repair it.

use std::fmt;

use cellblock_artifact::ArtifactError;

use crate::rejection::Rejection;
use crate::render::plain::line;

/// Names of other results that a message lists.
const LISTED: usize = 20;
/// Characters of a foreign name that a message repeats.
const SHOWN: usize = 80;

/// A result that could not be recorded or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AliasError {
    /// Nothing is recorded under this alias.
    #[error("no result is recorded as `{alias}`; {}", listing(known))]
    Unknown {
        /// The alias.
        alias: String,
        /// Those that there are, in the order of their recording.
        known: Vec<String>,
    },
    /// What a tool returned is not JSON.
    #[error(
        "could not record the result of `{tool}`: it is not a JSON document; values nested deeper than 127 levels, NaN and infinities are none"
    )]
    Json {
        /// The tool.
        tool: String,
        /// Where reading failed.
        #[source]
        source: serde_json::Error,
    },
    /// A table is not what its format says.
    #[error("could not record the table of `{tool}`: {what}; give a whole Arrow IPC or Parquet file")]
    Table {
        /// The tool.
        tool: String,
        /// What is wrong.
        what: String,
    },
    /// One result is too large.
    #[error(
        "the result of `{tool}` has {actual} bytes, the limit for one result is {limit}; ask for a smaller part of it"
    )]
    TooLarge {
        /// The tool.
        tool: String,
        /// Most bytes of one result.
        limit: u64,
        /// Its bytes.
        actual: u64,
    },
    /// All results together are too large.
    #[error(
        "with the result of `{tool}` all results would have {actual} bytes, the limit is {limit}; go on with what is recorded"
    )]
    Full {
        /// The tool.
        tool: String,
        /// Most bytes of all results.
        limit: u64,
        /// Their bytes with this one.
        actual: u64,
    },
    /// There are too many results.
    #[error("{limit} results are recorded, which is the limit; go on with what is recorded")]
    TooMany {
        /// Most results.
        limit: usize,
    },
    /// A name that no value can be bound to.
    #[error(
        "`{name}` {fault}; use a name such as `sales_2024`: ASCII letters, digits and `_`, a letter first"
    )]
    Name {
        /// The name, made visible and cut.
        name: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// The store of results was closed.
    #[error("results are no longer recorded here; the turn has ended")]
    Closed,
    /// A list of results that was saved can not be used.
    #[error("could not read the saved list of results; record them again")]
    Manifest(#[source] serde_json::Error),
    /// The file changed while it was recorded.
    #[error("the file of `{tool}` changed while it was recorded; record it when nothing writes to it")]
    Changed {
        /// The tool.
        tool: String,
    },
    /// A file can not be read, or a temporary one not be written.
    #[error("could not use a file of a result")]
    File(#[source] std::io::Error),
    /// The artifact store failed.
    #[error("could not use the store of results")]
    Store(#[from] ArtifactError),
}

/// Why no value can be bound to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFault {
    /// It is no plain identifier.
    NotAnIdentifier,
    /// It is a keyword.
    Keyword,
    /// It is a builtin.
    Builtin,
    /// The prelude binds it.
    Prelude,
    /// Another result has it, or had it.
    Taken,
    /// It is asked for twice.
    Twice,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnIdentifier => "is no name that can be bound",
            Self::Keyword => "is a keyword of Python",
            Self::Builtin => "is a builtin of Python",
            Self::Prelude => "is what cells call a library or a helper",
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

    /// The kind of mistake, for those who can repair it; nothing where Cellblock failed.
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

    /// The same for a model, about a field of its request; gives the error back where Cellblock failed.
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

/// A foreign name as a message may repeat it.
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
