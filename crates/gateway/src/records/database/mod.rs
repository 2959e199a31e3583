//! The databases that records can be in: an `SQLite` file of one gateway, or a Postgres database
//! that several share.
//!
//! Statements are written once, in the SQL that both understand, with placeholders `?1`, `?2`, ….
//! What differs is here: placeholders and types ([`postgres`]), how a schema is written
//! ([`schema`]), and [locks](DatabaseTransaction::lock).
//!
//! ```text
//! records.with(|database| { let transaction = database.transaction()?; …; transaction.commit() })
//!          │  on a thread that may block, to its end, even if nobody waits for it any more
//!          └─ SQLite: the one connection of the process        Postgres: a connection of the pool
//! ```

#[cfg(feature = "postgres")]
pub(super) mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "no_postgres.rs"]
pub(super) mod postgres;
pub(super) mod schema;
pub(super) mod sqlite;
pub(super) mod url;
mod value;

use std::ops::Deref;
use std::time::Duration;

pub use value::{DatabaseRow, DatabaseValue, ToDatabaseValue};

use postgres::{PostgresError, PostgresSession};

/// Maximum time for which work waits for a connection to a server, and for a new one.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// A result of a statement.
pub(crate) type DatabaseResult<T> = Result<T, DatabaseError>;

/// Lists the values of a statement's placeholders.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::records::ToDatabaseValue::value(&$value)),*]
    };
}
pub(crate) use params;

/// A connection to a database.
#[derive(Debug)]
pub struct Database(DatabaseConnection);

#[derive(Debug)]
enum DatabaseConnection {
    Sqlite(rusqlite::Connection),
    Postgres(PostgresSession),
}

/// The clock of a database that several gateways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseClock {
    /// Milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// Milliseconds since the server started.
    pub(crate) up_ms: i64,
}

/// Reason that a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// `SQLite` reports it.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Postgres reports it, or the connection to it.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// Postgres does not answer.
    #[error("Postgres did not answer within {0} seconds")]
    Silent(u64),
    /// A statement before has broken the connection.
    #[error("the connection to Postgres is broken")]
    Broken,
    /// A text that Postgres cannot store.
    #[error("a text contains the character U+0000, which Postgres cannot store")]
    Nul,
}

impl Database {
    /// Runs a statement, and returns the number of rows that it changed.
    pub fn execute(&self, sql: &str, values: &[DatabaseValue<'_>]) -> DatabaseResult<u64> {
        match &self.0 {
            DatabaseConnection::Sqlite(connection) => sqlite::execute(connection, sql, values),
            DatabaseConnection::Postgres(session) => session.execute(sql, values),
        }
    }

    /// Runs a statement, and reads the rows that it returns.
    pub fn query<T>(
        &self,
        sql: &str,
        values: &[DatabaseValue<'_>],
        mut read: impl FnMut(&DatabaseRow<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<Vec<T>> {
        match &self.0 {
            DatabaseConnection::Sqlite(connection) => sqlite::query(connection, sql, values, read),
            DatabaseConnection::Postgres(session) => {
                let rows = session.query(sql, values)?;
                rows.iter().map(|row| read(&DatabaseRow::Postgres(row))).collect()
            }
        }
    }

    /// Runs a statement, and reads the first row, if it returns one.
    pub fn first<T>(
        &self,
        sql: &str,
        values: &[DatabaseValue<'_>],
        read: impl FnMut(&DatabaseRow<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<Option<T>> {
        Ok(self.query(sql, values, read)?.into_iter().next())
    }

    /// Returns whether a statement returns a row.
    pub fn exists(&self, sql: &str, values: &[DatabaseValue<'_>]) -> DatabaseResult<bool> {
        Ok(self.first(sql, values, |_| Ok(()))?.is_some())
    }

    /// Runs statements without values.
    pub fn batch(&self, sql: &str) -> DatabaseResult<()> {
        match &self.0 {
            DatabaseConnection::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            DatabaseConnection::Postgres(session) => session.batch(sql),
        }
    }

    /// Returns the clock that all gateways of this database share; `None` if it has only one gateway.
    pub(crate) fn clock(&self) -> DatabaseResult<Option<DatabaseClock>> {
        if let DatabaseConnection::Sqlite(_) = &self.0 {
            return Ok(None);
        }
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), \
                   CAST(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS BIGINT)";
        self.first(sql, &[], |row| {
            Ok(DatabaseClock {
                now_ms: row.get(0)?,
                up_ms: row.get(1)?,
            })
        })
    }

    /// Begins a transaction, which is rolled back unless it is committed.
    pub fn transaction(&mut self) -> DatabaseResult<DatabaseTransaction<'_>> {
        self.batch(match &self.0 {
            // It waits for another process that writes. A transaction that read before it writes
            // could not: it would fail.
            DatabaseConnection::Sqlite(_) => "BEGIN IMMEDIATE",
            DatabaseConnection::Postgres(_) => "BEGIN",
        })?;
        Ok(DatabaseTransaction {
            database: self,
            open: true,
        })
    }
}

/// A transaction.
#[derive(Debug)]
pub struct DatabaseTransaction<'a> {
    database: &'a Database,
    open: bool,
}

impl Deref for DatabaseTransaction<'_> {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database
    }
}

impl DatabaseTransaction<'_> {
    /// Keeps what the transaction has done.
    pub fn commit(mut self) -> DatabaseResult<()> {
        self.batch("COMMIT")?;
        self.open = false;
        Ok(())
    }

    /// Waits until no other transaction holds or shares what has this name, and holds it to its
    /// end. `SQLite` has one writer anyway.
    pub fn lock(&self, name: &str) -> DatabaseResult<()> {
        self.advise("SELECT pg_advisory_xact_lock(hashtextextended(?1, 0))", name)
    }

    /// Waits until no other transaction holds what has this name, and shares it to its end.
    pub fn share(&self, name: &str) -> DatabaseResult<()> {
        self.advise(
            "SELECT pg_advisory_xact_lock_shared(hashtextextended(?1, 0))",
            name,
        )
    }

    fn advise(&self, sql: &str, name: &str) -> DatabaseResult<()> {
        match &self.0 {
            DatabaseConnection::Sqlite(_) => Ok(()),
            // Other programs may use locks of the same database.
            DatabaseConnection::Postgres(session) => {
                session.query(sql, params![format!("cellblock {name}")]).map(drop)
            }
        }
    }
}

impl Drop for DatabaseTransaction<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        match &self.0 {
            // Some errors have rolled it back already.
            DatabaseConnection::Sqlite(connection) if connection.is_autocommit() => {}
            DatabaseConnection::Sqlite(_) => {
                if let Err(error) = self.batch("ROLLBACK") {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "roll back a transaction"
                    );
                }
            }
            DatabaseConnection::Postgres(session) => session.roll_back(),
        }
    }
}
