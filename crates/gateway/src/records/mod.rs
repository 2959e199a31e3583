//! Records that gateways keep across restarts: in an `SQLite` file of one gateway, or in a Postgres database
//! that several share.
//!
//! Each kind of record has a module of its own here with its statements; they all go through
//! [`Records::with`], off the async threads. The [`database`] has what differs.

mod allowance;
pub(crate) mod artifacts;
#[cfg(test)]
pub(crate) mod conformance;
mod containers;
mod conversations;
pub(crate) mod database;
mod error;
mod files;
pub(crate) mod holders;
pub mod keys;
#[cfg(test)]
mod outages;
mod page;
pub(crate) mod places;
pub(crate) mod rates;
pub(crate) mod responses;
pub(crate) mod results;
mod runs;
mod skills;
pub mod usage;
mod volumes;
pub(crate) mod whereabouts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use allowance::{Allowance, Quota, UnknownQuota};
pub(crate) use containers::{ContainerFileRow, ContainerRow};
pub(crate) use conversations::{AddedItems, ConversationRow, ConversationUpdate, ItemRow};
pub use database::postgres::{FromPostgres, PostgresUrl};
pub use database::url::{InvalidPostgresUrl, RootsError};
pub use database::{
    Database, DatabaseError, DatabaseRow, DatabaseTransaction, DatabaseValue, ToDatabaseValue,
};
pub use error::RecordsError;
pub(crate) use files::FileRow;
pub(crate) use page::{ListPage, Page};
pub(crate) use runs::{RunRow, RunsOf};
pub(crate) use skills::{SkillRow, SkillVersionRow, VersionAddition, VersionChoice, VersionRemoval};
pub(crate) use volumes::{VolumeOpening, VolumeRemoval, VolumeRevision, VolumeRow, VolumeWriter};

use database::postgres::PostgresPool;
use database::{WAIT, sqlite};
use parking_lot::Mutex;

/// Stands for the file in errors of records without one.
const IN_MEMORY: &str = ":memory:";

/// Location of records.
#[derive(Clone, Debug)]
pub enum RecordsPlace {
    /// In an `SQLite` file, which is made if it is missing.
    File(PathBuf),
    /// In a Postgres database.
    Postgres(Box<PostgresUrl>),
}

/// The records of a gateway. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Records(RecordsBackend);

#[derive(Clone, Debug)]
enum RecordsBackend {
    Sqlite {
        connection: Arc<Mutex<Database>>,
        path: Arc<Path>,
    },
    Postgres(PostgresPool),
}

impl RecordsPlace {
    /// Opens the records, and makes them or brings them up to date where that is needed.
    pub async fn open(&self) -> Result<Records, RecordsError> {
        match self {
            Self::File(path) => Records::open(path),
            Self::Postgres(url) => Records::connect(url).await,
        }
    }

    /// Opens the records to read them, and changes nothing: neither are missing ones made, nor old
    /// ones brought up to date.
    pub async fn look(&self) -> Result<Records, RecordsError> {
        match self {
            Self::File(path) => Records::look(path),
            Self::Postgres(url) => {
                let records = Records::unprepared(url, WAIT)?;
                let (found, has_keys) = records
                    .with(|database| Ok((database.version()?, database.has_keys()?)))
                    .await?;
                RecordsError::check_version(&url.to_string(), found)?;
                if has_keys {
                    Ok(records)
                } else {
                    Records::in_memory()
                }
            }
        }
    }
}

impl Records {
    /// Opens a file of records, and makes it or brings it up to date where that is needed.
    ///
    /// It holds what people asked, so nobody but its owner can read it.
    pub fn open(path: &Path) -> Result<Self, RecordsError> {
        sqlite::make(path).map_err(|source| RecordsError::Make {
            path: path.to_owned(),
            source,
        })?;
        Self::prepare(sqlite::open(path), path)
    }

    /// Opens a file to read it, and changes nothing.
    fn look(path: &Path) -> Result<Self, RecordsError> {
        if !path.exists() {
            return Self::in_memory();
        }
        let place = path.display().to_string();
        let failed = |error| RecordsError::failed(&place, error);
        let database = sqlite::open_to_read(path).map_err(failed)?;
        RecordsError::check_version(&place, database.version().map_err(failed)?)?;
        if database.has_keys().map_err(failed)? {
            Ok(Self::over(database, path))
        } else {
            Self::in_memory()
        }
    }

    /// Connects to a Postgres database, and brings it up to date where that is needed.
    pub async fn connect(url: &PostgresUrl) -> Result<Self, RecordsError> {
        let records = Self::unprepared(url, WAIT)?;
        let found = records.with(Database::migrate).await?;
        RecordsError::check_version(&url.to_string(), found)?;
        Ok(records)
    }

    fn unprepared(url: &PostgresUrl, wait: Duration) -> Result<Self, RecordsError> {
        let pool = url.pool(wait).map_err(|source| RecordsError::Roots {
            place: url.to_string(),
            source,
        })?;
        Ok(Self(RecordsBackend::Postgres(pool)))
    }

    /// Records that end with the process.
    pub fn in_memory() -> Result<Self, RecordsError> {
        Self::prepare(sqlite::in_memory(), Path::new(IN_MEMORY))
    }

    fn prepare(database: database::DatabaseResult<Database>, path: &Path) -> Result<Self, RecordsError> {
        let place = path.display().to_string();
        let failed = |error| RecordsError::failed(&place, error);
        let mut database = database.map_err(failed)?;
        RecordsError::check_version(&place, database.version().map_err(failed)?)?;
        database.migrate().map_err(failed)?;
        Ok(Self::over(database, path))
    }

    fn over(database: Database, path: &Path) -> Self {
        Self(RecordsBackend::Sqlite {
            connection: Arc::new(Mutex::new(database)),
            path: path.into(),
        })
    }

    /// Returns whether other gateways may use them, too.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self.0, RecordsBackend::Postgres(_))
    }

    /// Returns the folder of their file, if they are in one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.0 {
            RecordsBackend::Sqlite { path, .. } => path.parent(),
            RecordsBackend::Postgres(_) => None,
        }
    }

    /// Looks for damage in the whole file, for a few seconds. What is not read by then is found
    /// when it is used.
    pub async fn check(&self) -> Result<(), RecordsError> {
        match (self.with(Database::damage).await?, &self.0) {
            (Some(found), RecordsBackend::Sqlite { path, .. }) => Err(RecordsError::Damaged {
                path: path.to_path_buf(),
                found,
            }),
            _ => Ok(()),
        }
    }

    /// Does something with a connection, on a thread that may block. It is done to its end, even if
    /// nobody waits for it any more.
    pub async fn with<T, F>(&self, work: F) -> Result<T, RecordsError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Database) -> database::DatabaseResult<T> + Send + 'static,
    {
        let (done, place) = match &self.0 {
            RecordsBackend::Sqlite { connection, path } => {
                let connection = Arc::clone(connection);
                let done = tokio::task::spawn_blocking(move || {
                    // A statement that panicked has left no transaction open: they roll back when
                    // they are dropped.
                    work(&mut connection.lock())
                });
                (done.await, path.display().to_string())
            }
            RecordsBackend::Postgres(pool) => {
                let mut database = pool.connection().await?;
                let done = tokio::task::spawn_blocking(move || work(&mut database));
                (done.await, pool.place().to_owned())
            }
        };
        let done = done.map_err(|_| RecordsError::Ending)?;
        done.map_err(|error| RecordsError::failed(&place, error))
    }
}

#[cfg(test)]
mod tests;
