//! What a gateway remembers across restarts, in one `SQLite` file.
//!
//! Each kind of record has a module of its own here with its statements; they all go through [`Records::with`], off the async threads.
//! The schema grows by the files in `migrations/`, in order; `PRAGMA user_version` counts those that were applied.

mod allowance;
pub(crate) mod artifacts;
mod containers;
mod conversations;
mod files;
pub mod keys;
mod page;
pub(crate) mod responses;
pub(crate) mod results;
pub mod usage;
pub(crate) mod whereabouts;

use std::ffi::c_int;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use allowance::{Allowance, Quota, UnknownQuota};
pub(crate) use containers::{ContainerFileRow, ContainerRow};
pub(crate) use conversations::{AddedItems, ConversationRow, ItemRow, Left};
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
    include_str!("migrations/container_keys.sql"),
    include_str!("migrations/conversations.sql"),
    include_str!("migrations/automatic.sql"),
    include_str!("migrations/key_connectors.sql"),
    include_str!("migrations/fetches.sql"),
    include_str!("migrations/key_minimum_backend.sql"),
    include_str!("migrations/key_max_network.sql"),
];

/// How long a statement waits for another process, such as `cellblock key`, that writes.
const BUSY: Duration = Duration::from_secs(10);
/// Maximum time that [`Records::check`] reads the file.
const CHECK: Duration = Duration::from_secs(5);
/// Pages that are checked between two looks at the clock.
const CHECK_STEPS: c_int = 100;
/// Stands for the file in errors of records without one.
const IN_MEMORY: &str = ":memory:";

/// The records of a gateway. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Records {
    connection: Arc<Mutex<Connection>>,
    path: Arc<Path>,
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
        "open the records at `{}`: they have schema {found}, and this version knows {known}; run the newer version, or move the file away",
        path.display()
    )]
    Newer {
        /// Where it is.
        path: PathBuf,
        /// The file's.
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
    /// A statement failed.
    #[error("read or write the records at `{}`", path.display())]
    Statement {
        /// Where they are.
        path: PathBuf,
        /// Why it failed.
        source: rusqlite::Error,
    },
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
        Self::prepare(opened, path)
    }

    /// Opens the records to read them, and changes nothing: neither is a missing file made, nor an old one brought up to date.
    pub fn look(path: &Path) -> Result<Self, RecordsError> {
        if !path.exists() {
            return Self::in_memory();
        }
        let failed = |error| failed(path, error);
        let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        opened.busy_timeout(BUSY).map_err(failed)?;
        newer(&opened, path)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'keys')";
        let has_keys: bool = opened.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
        if has_keys {
            Ok(Self::over(opened, path))
        } else {
            Self::in_memory()
        }
    }

    /// Records that end with the process.
    pub fn in_memory() -> Result<Self, RecordsError> {
        let path = Path::new(IN_MEMORY);
        let opened = Connection::open_in_memory().map_err(|error| failed(path, error))?;
        Self::prepare(opened, path)
    }

    fn prepare(mut connection: Connection, path: &Path) -> Result<Self, RecordsError> {
        set_up(&connection).map_err(|error| failed(path, error))?;
        newer(&connection, path)?;
        migrate(&mut connection).map_err(|error| failed(path, error))?;
        Ok(Self::over(connection, path))
    }

    fn over(connection: Connection, path: &Path) -> Self {
        Self {
            connection: Arc::new(Mutex::new(connection)),
            path: path.into(),
        }
    }

    /// Looks for damage in the whole file, for a few seconds. What is not read by then is found when it is used.
    pub async fn check(&self) -> Result<(), RecordsError> {
        let found = self.with(|connection| quick_check(connection, CHECK)).await?;
        match found {
            Some(found) => Err(RecordsError::Damaged {
                path: self.path.to_path_buf(),
                found,
            }),
            None => Ok(()),
        }
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
        let done = done.await.map_err(|_| RecordsError::Ending)?;
        done.map_err(|error| failed(&self.path, error))
    }
}

/// Says of a failed statement where the records are, and whether they are damaged.
fn failed(path: &Path, error: rusqlite::Error) -> RecordsError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => RecordsError::Damaged {
            path,
            found: error.to_string(),
        },
        _ => RecordsError::Statement { path, source: error },
    }
}

/// The first damage found within a time, if any.
fn quick_check(connection: &mut Connection, limit: Duration) -> rusqlite::Result<Option<String>> {
    let end = Instant::now() + limit;
    connection.progress_handler(CHECK_STEPS, Some(move || Instant::now() >= end))?;
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match found {
        Ok(found) if found == "ok" => Ok(None),
        // A heading with the database's name comes first.
        Ok(found) => Ok(Some(found.lines().next_back().unwrap_or_default().to_owned())),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            tracing::info!(
                seconds = limit.as_secs_f64(),
                "the records are too large to check all of them"
            );
            Ok(None)
        }
        Err(error) => Err(error),
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

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a write-ahead log this survives a crash of the process; a crash of the machine may cost the last moments.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The version of the schema that all migrations lead to.
fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Refuses records of a newer version.
fn newer(connection: &Connection, path: &Path) -> Result<(), RecordsError> {
    let found = version(connection).map_err(|error| failed(path, error))?;
    if found > known() {
        return Err(RecordsError::Newer {
            path: path.to_owned(),
            found,
            known: known(),
        });
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    // Two processes that start at once apply each step once.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known().max(found))?;
    transaction.commit()
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
    /// Records of a page-sized row each, with the bytes of a page in their middle overwritten.
    fn damaged(path: &Path) {
        let records = Records::open(path).unwrap();
        let connection = records.connection.lock().unwrap();
        let rows = "CREATE TABLE notes (text TEXT);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                    INSERT INTO notes SELECT printf('%.1000c', 'x') FROM n;
                    PRAGMA wal_checkpoint(TRUNCATE);";
        connection.execute_batch(rows).unwrap();
        drop(connection);
        drop(records);
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() * 3 / 4 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0xa5);
        std::fs::write(path, bytes).unwrap();
    }

    #[tokio::test]
    async fn damage_anywhere_in_the_file_is_found_and_reported_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        Records::open(&path).unwrap().check().await.unwrap();
        damaged(&path);
        // Opening reads only the schema.
        let records = Records::open(&path).unwrap();
        let error = records.check().await.unwrap_err();
        assert!(matches!(error, RecordsError::Damaged { .. }), "{error:?}");
        let expected = format!("use the records at `{}`: the file is damaged: ", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        // A statement that meets the damage reports it in the same way.
        let read = records
            .with(|connection| connection.query_row("SELECT sum(length(text)) FROM notes", [], |_| Ok(())))
            .await;
        assert!(matches!(read, Err(RecordsError::Damaged { .. })), "{read:?}");
    }

    #[tokio::test]
    async fn a_file_that_is_not_a_database_is_reported_as_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        std::fs::write(&path, "not a database, however often it is read".repeat(200)).unwrap();
        for opened in [Records::open(&path), Records::look(&path)] {
            let error = opened.unwrap_err().to_string();
            let expected = format!(
                "use the records at `{}`: the file is damaged: file is not a database",
                path.display()
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_check_of_large_records_ends_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        damaged(&path);
        let records = Records::open(&path).unwrap();
        let mut connection = records.connection.lock().unwrap();
        // It gives up before it comes to the damage.
        assert_eq!(quick_check(&mut connection, Duration::ZERO).unwrap(), None);
        assert!(quick_check(&mut connection, CHECK).unwrap().is_some());
    }

    #[tokio::test]
    async fn looking_at_records_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let any =
            |records: Records| async move { crate::keys::Keys::new(records).any_usable().await.unwrap() };
        assert!(!any(Records::look(&path).unwrap()).await);
        assert!(!path.exists());
        let keys = crate::keys::Keys::new(Records::open(&path).unwrap());
        keys.create("ci", crate::keys::KeyTerms::default()).await.unwrap();
        assert!(any(Records::look(&path).unwrap()).await);
    }
}
