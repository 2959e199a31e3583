//! Why records cannot be read or written.

use std::error::Error;
use std::path::{Path, PathBuf};

use deadpool_postgres::{PoolError, TimeoutType};
use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

use super::database::DatabaseError;
use super::database::postgres::{CONNECTIONS, is_lost};
use super::database::schema::known;
use super::database::url::RootsError;

/// Why records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file or its directory cannot be made.
    #[error("make the records at `{}`", path.display())]
    Make {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// They were written by a newer version.
    #[error(
        "open the records at `{place}`: they have schema {found}, and this version knows {known}; run the newer version, or use other records"
    )]
    Newer {
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
        /// Where it is.
        path: PathBuf,
        /// The first damage that `SQLite` reports.
        found: String,
    },
    /// The server of the database cannot be verified.
    #[error("connect to the records at `{place}`")]
    Roots {
        /// Where they are.
        place: String,
        /// Why not.
        source: RootsError,
    },
    /// The server of the database cannot be used now.
    #[error("use the records at `{place}`: {problem}")]
    Unavailable {
        /// Where they are.
        place: String,
        /// What to do about it.
        problem: String,
        /// What it reports.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// A statement failed.
    #[error("read or write the records at `{place}`")]
    Statement {
        /// Where they are.
        place: String,
        /// Why it failed.
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

    pub(super) fn newer(place: &str, found: u32) -> Result<(), Self> {
        if found <= known() {
            return Ok(());
        }
        Err(Self::Newer {
            place: place.to_owned(),
            found,
            known: known(),
        })
    }

    /// Of a failed statement: says where the records are, whether they are damaged, and whether they can be used at all.
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

    /// Without a connection.
    pub(super) fn unconnected(place: &str, error: PoolError) -> Self {
        let problem = match error {
            PoolError::Backend(error) => return Self::unavailable(place, error),
            PoolError::Timeout(TimeoutType::Wait) => {
                format!(
                    "all {CONNECTIONS} connections of this gateway are in use; Postgres may be overloaded"
                )
            }
            _ => "Postgres does not accept a connection in time; see that it runs and can be reached"
                .to_owned(),
        };
        Self::Unavailable {
            place: place.to_owned(),
            problem,
            source: None,
        }
    }

    fn unavailable(place: &str, error: tokio_postgres::Error) -> Self {
        let problem = problem(&error).unwrap_or("see that Postgres runs and can be reached");
        Self::Unavailable {
            place: place.to_owned(),
            problem: problem.to_owned(),
            source: Some(Box::new(error)),
        }
    }
}

/// What an operator does about an error, if that is known.
fn problem(error: &tokio_postgres::Error) -> Option<&'static str> {
    Some(match error.code() {
        Some(&(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION)) => {
            "Postgres rejects the user, the password or the encryption; correct the URL, or `pg_hba.conf`"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "create the database, or correct its name in the URL",
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "the user needs the right to create and change tables: make it the owner of the database"
        }
        Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            "Postgres has no connection left; raise `max_connections`, or run fewer gateways"
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            "Postgres only reads; name the primary server in the URL, or add `target_session_attrs=read-write`"
        }
        Some(&(SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN)) => {
            "Postgres is starting or stopping"
        }
        None if error.to_string().contains("TLS") => {
            "see that Postgres has TLS and a certificate for this host, signed by an authority that this machine or `sslrootcert` knows"
        }
        _ => return None,
    })
}
