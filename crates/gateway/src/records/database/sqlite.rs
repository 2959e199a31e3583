//! Records in an `SQLite` file.

use std::ffi::c_int;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::{Database, DatabaseConnection, DatabaseResult, DatabaseRow, DatabaseValue};

/// Maximum time for which a statement waits for another process, such as `cellblock key`, that writes.
const BUSY: Duration = Duration::from_secs(10);
/// Maximum time that [`Database::damage`] reads the file.
const CHECK: Duration = Duration::from_secs(5);
/// Pages that are checked between two looks at the clock.
const CHECK_STEPS: c_int = 100;

/// Makes an empty file, and the directory around it, if they are not there. `SQLite` gives its
/// other files the mode of this one.
pub(in crate::records) fn make(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)?;
    Ok(())
}

/// Opens a file that is there.
pub(in crate::records) fn open(path: &Path) -> DatabaseResult<Database> {
    set_up(Connection::open(path)?)
}

/// Opens a file to read it.
pub(in crate::records) fn open_to_read(path: &Path) -> DatabaseResult<Database> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    Ok(Database(DatabaseConnection::Sqlite(connection)))
}

/// Makes a database that ends with the process.
pub(in crate::records) fn in_memory() -> DatabaseResult<Database> {
    set_up(Connection::open_in_memory()?)
}

fn set_up(connection: Connection) -> DatabaseResult<Database> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a write-ahead log this survives a crash of the process; a crash of the machine may cost
    // the last moments.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(Database(DatabaseConnection::Sqlite(connection)))
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    values: &[DatabaseValue<'_>],
) -> DatabaseResult<u64> {
    let changed = connection
        .prepare_cached(sql)?
        .execute(params_from_iter(values))?;
    Ok(changed as u64)
}

pub(super) fn query<T>(
    connection: &Connection,
    sql: &str,
    values: &[DatabaseValue<'_>],
    mut read: impl FnMut(&DatabaseRow<'_>) -> DatabaseResult<T>,
) -> DatabaseResult<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(&DatabaseRow::Sqlite(row))?);
    }
    Ok(all)
}

impl Database {
    /// Returns the first damage that is found in the file within a few seconds. A server looks
    /// after its own files.
    pub(in crate::records) fn damage(&mut self) -> DatabaseResult<Option<String>> {
        self.damage_within(CHECK)
    }

    /// The same within another time.
    pub(in crate::records) fn damage_within(&mut self, limit: Duration) -> DatabaseResult<Option<String>> {
        match &mut self.0 {
            DatabaseConnection::Sqlite(connection) => quick_check(connection, limit),
            DatabaseConnection::Postgres(_) => Ok(None),
        }
    }
}

/// The first damage found within a time, if any.
fn quick_check(connection: &mut Connection, limit: Duration) -> DatabaseResult<Option<String>> {
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
        Err(error) => Err(error.into()),
    }
}
