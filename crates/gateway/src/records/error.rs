//! Errors of reading and writing records.

use std::error::Error;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::database::DatabaseError;
use super::database::postgres::{PostgresError, is_full, is_lost, problem};
use super::database::schema::{is_too_old, known};
use super::database::url::RootsError;

/// Reason that records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file or its directory cannot be made.
    #[error("make the records at `{}`", path.display())]
    Make {
        /// Path at which it should be.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// They were written by a newer version.
    #[error(
        "open the records at `{place}`: they have schema {found}, and this version knows {known}; run the \
         newer version, or use other records"
    )]
    Newer {
        /// Location of the records.
        place: String,
        /// Theirs.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// They were written before the first release.
    #[error(
        "open the records at `{place}`: they have schema {found}, from before the first release, and this \
         version knows {known}; move them away, or use other records"
    )]
    Older {
        /// Where they are.
        place: String,
        /// Theirs.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The file is damaged, or not a database.
    #[error("use the records at `{}`: the file is damaged: {found}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The first damage that `SQLite` reports.
        found: String,
    },
    /// The server of the database cannot be verified.
    #[error("connect to the records at `{place}`")]
    Roots {
        /// Location of the records.
        place: String,
        /// Reason.
        source: RootsError,
    },
    /// The server of the database cannot be used now.
    #[error("use the records at `{place}`: {problem}")]
    Unavailable {
        /// Location of the records.
        place: String,
        /// Hint for the operator.
        problem: String,
        /// Error of the database.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// A statement failed.
    #[error("read or write the records at `{place}`")]
    Statement {
        /// Location of the records.
        place: String,
        /// Reason of the failure.
        source: DatabaseError,
    },
    /// A task ended before it answered.
    #[error("read or write the records: the process is ending")]
    Ending,
}

impl RecordsError {
    /// Whether the same may succeed a little later.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Statement { .. })
    }

    /// Whether the database cannot be used now, whatever is asked of it.
    pub(crate) const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether the disk of the database is full.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Statement {
                source: DatabaseError::Sqlite(error),
                ..
            } => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Statement {
                source: DatabaseError::Postgres(error),
                ..
            } => is_full(error),
            _ => false,
        }
    }

    /// Whether a text of the caller has a character that the database cannot store.
    pub(crate) const fn is_nul(&self) -> bool {
        matches!(
            self,
            Self::Statement {
                source: DatabaseError::Nul,
                ..
            }
        )
    }

    /// Rejects a version of the schema that this version cannot use.
    pub(super) fn check_version(place: &str, found: u32) -> Result<(), Self> {
        let (place, known) = (place.to_owned(), known());
        if is_too_old(found) {
            return Err(Self::Older { place, found, known });
        }
        if found > known {
            return Err(Self::Newer { place, found, known });
        }
        Ok(())
    }

    /// Of a failed statement: says where the records are, whether they are damaged, and whether
    /// they can be used at all.
    pub(super) fn failed(place: &str, error: DatabaseError) -> Self {
        match error {
            DatabaseError::Sqlite(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                ) =>
            {
                Self::Damaged {
                    path: Path::new(place).to_owned(),
                    found: error.to_string(),
                }
            }
            DatabaseError::Postgres(error) if is_lost(&error) || problem(&error).is_some() => {
                Self::unavailable(place, error)
            }
            DatabaseError::Silent(_) | DatabaseError::Broken => Self::Unavailable {
                place: place.to_owned(),
                problem: "see that Postgres runs and can be reached".to_owned(),
                source: Some(Box::new(error)),
            },
            source => Self::Statement {
                place: place.to_owned(),
                source,
            },
        }
    }

    /// Of a database that reports why it cannot be used.
    pub(super) fn unavailable(place: &str, error: PostgresError) -> Self {
        let problem = problem(&error).unwrap_or("see that Postgres runs and can be reached");
        Self::Unavailable {
            place: place.to_owned(),
            problem: problem.to_owned(),
            source: Some(Box::new(error)),
        }
    }
}
