//! What a gateway remembers across restarts, in one `SQLite` file.
//!
//! Each kind of record has a module of its own here with its statements; they all go through [`Records::with`], off the async threads.
//! The schema grows by the files in `migrations/`, in order; `PRAGMA user_version` counts those that were applied.

pub(crate) mod artifacts;
mod containers;
mod files;
pub mod keys;
mod page;
pub(crate) mod responses;
pub(crate) mod results;
pub mod usage;

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

pub(crate) use containers::{ContainerFileRow, ContainerRow};
pub(crate) use files::FileRow;
pub(crate) use page::{Page, Paged};

/// The steps of the schema, oldest first. Steps that were released do not change any more.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/responses.sql"),
    include_str!("migrations/artifacts.sql"),
    include_str!("migrations/keys.sql"),
    include_str!("migrations/usage.sql"),
    include_str!("migrations/containers.sql"),
    include_str!("migrations/files.sql"),
    include_str!("migrations/evidence.sql"),
    include_str!("migrations/results.sql"),
];

/// How long a statement waits for another process, such as `cellblock key`, that writes.
const BUSY: Duration = Duration::from_secs(10);

/// The records of a gateway. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Records {
    connection: Arc<Mutex<Connection>>,
}

/// Why records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file cannot be opened or made.
    #[error("open the records at `{}`", path.display())]
    Open {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// Its file or directory cannot be made.
    #[error("make the records at `{}`", path.display())]
    Make {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file was written by a newer version.
    #[error(
        "open the records: they have schema {found}, and this version knows {known}; run the newer version, or move the file away"
    )]
    Newer {
        /// The file's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A statement failed.
    #[error("read or write the records")]
    Statement(#[from] rusqlite::Error),
    /// A task ended before it answered.
    #[error("read or write the records: the process is ending")]
    Ending,
}

impl Records {
    /// Opens the records, and makes them or brings them up to date where that is needed.
    ///
    /// They hold what people asked, so nobody but their owner can read them.
    pub fn open(path: &Path) -> Result<Self, RecordsError> {
        make(path).map_err(|source| RecordsError::Make {
            path: path.to_owned(),
            source,
        })?;
        let opened = Connection::open(path).map_err(|source| RecordsError::Open {
            path: path.to_owned(),
            source,
        })?;
        Self::prepare(opened)
    }

    /// Records that end with the process.
    pub fn in_memory() -> Result<Self, RecordsError> {
        Self::prepare(Connection::open_in_memory()?)
    }

    fn prepare(mut connection: Connection) -> Result<Self, RecordsError> {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // With a write-ahead log this survives a crash of the process; a crash of the machine may cost the last moments.
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection)?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// Does something with the connection, on a thread that may block.
    pub async fn with<T, F>(&self, work: F) -> Result<T, RecordsError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let done = tokio::task::spawn_blocking(move || {
            // A statement that panicked has left no transaction open: they roll back when they are dropped.
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection)
        });
        Ok(done.await.map_err(|_| RecordsError::Ending)??)
    }
}

/// Makes an empty file, and the directory around it, if they are not there. `SQLite` gives its other files the mode of this one.
fn make(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), RecordsError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    // Two processes that start at once apply each step once.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(RecordsError::Newer { found, known });
    }
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn records_are_there_after_they_were_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let records = Records::open(&path).unwrap();
        records
            .with(|connection| {
                connection.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('kept');")
            })
            .await
            .unwrap();
        drop(records);
        let records = Records::open(&path).unwrap();
        let text: String = records
            .with(|connection| connection.query_row("SELECT text FROM notes", [], |row| row.get(0)))
            .await
            .unwrap();
        assert_eq!(text, "kept");
    }

    #[test]
    fn records_of_a_newer_version_are_refused_and_left_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 999).unwrap();
        drop(connection);
        assert!(matches!(
            Records::open(&path),
            Err(RecordsError::Newer { found: 999, .. })
        ));
        let connection = Connection::open(&path).unwrap();
        let found: u32 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(found, 999);
    }
}
