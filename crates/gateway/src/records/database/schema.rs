//! The schema, and its growth: by steps, in order. A database has the number of those that were applied.
//!
//! They are written for `SQLite`, with its types. A line that begins with `-- postgres: ` is for
//! Postgres alone, and a part between `/* sqlite: */` and `/* :sqlite */` for `SQLite`.

use super::{Database, DatabaseConnection, DatabaseResult, params};

/// The steps of the schema, oldest first. Steps that were released do not change any more.
const STEPS: &[&str] = &[include_str!("../schema.sql")];

/// Number of steps before the first release, which are one now: a database with some of them cannot
/// be brought up to date.
const BEFORE: u32 = 23;

/// Words of `SQLite` in the steps, and those of Postgres.
const WORDS: &[(&str, &str)] = &[
    (
        "INTEGER PRIMARY KEY AUTOINCREMENT",
        "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    ),
    ("INTEGER", "BIGINT"),
    ("BLOB", "BYTEA"),
    (") VIRTUAL", ") STORED"),
    (") STRICT, WITHOUT ROWID;", ");"),
    (") STRICT;", ");"),
    ("-- postgres: ", ""),
    ("/* sqlite: */", "/*"),
    ("/* :sqlite */", "*/"),
];

/// The version of the schema that all steps lead to.
pub(in crate::records) fn known() -> u32 {
    BEFORE.saturating_add(u32::try_from(STEPS.len()).unwrap_or(u32::MAX))
}

/// Whether a version is older than every release.
pub(in crate::records) const fn is_too_old(version: u32) -> bool {
    version > 0 && version <= BEFORE
}

/// Returns a step as Postgres understands it.
fn for_postgres(step: &str) -> String {
    let translate = |step: String, (from, to): &(&str, &str)| step.replace(from, to);
    WORDS.iter().fold(step.to_owned(), translate)
}

impl Database {
    /// Returns the version of the schema of this database: 0 if there is none yet.
    pub(in crate::records) fn version(&self) -> DatabaseResult<u32> {
        let version = match &self.0 {
            DatabaseConnection::Sqlite(connection) => {
                return Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?);
            }
            DatabaseConnection::Postgres(_) => {
                let made = "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('cellblock_schema')";
                if self.exists(made, &[])? {
                    self.first("SELECT version FROM cellblock_schema", &[], |row| {
                        row.get::<i64>(0)
                    })?
                } else {
                    None
                }
            }
        };
        Ok(version.map_or(0, |version| u32::try_from(version).unwrap_or(u32::MAX)))
    }

    /// Brings the schema up to date. Processes that start at the same time apply each step once.
    /// Returns the version that was found: if it is newer than the known one, or too old, nothing
    /// has been changed.
    pub(in crate::records) fn migrate(&mut self) -> DatabaseResult<u32> {
        let is_sqlite = matches!(&self.0, DatabaseConnection::Sqlite(_));
        let transaction = self.transaction()?;
        if !is_sqlite {
            transaction.lock("schema")?;
        }
        let found = transaction.version()?;
        if found < known() && !is_too_old(found) {
            for step in STEPS.iter().skip(found.saturating_sub(BEFORE) as usize) {
                if is_sqlite {
                    transaction.batch(step)?;
                } else {
                    transaction.batch(&for_postgres(step))?;
                }
            }
            if is_sqlite {
                transaction.batch(&format!("PRAGMA user_version = {}", known()))?;
            } else {
                transaction.batch("CREATE TABLE IF NOT EXISTS cellblock_schema (version BIGINT NOT NULL)")?;
                transaction.batch("DELETE FROM cellblock_schema")?;
                let insert = "INSERT INTO cellblock_schema (version) VALUES (?1)";
                transaction.execute(insert, params![i64::from(known())])?;
            }
        }
        transaction.commit()?;
        Ok(found)
    }

    /// Returns whether there is a table for keys, without which there can be no keys.
    pub(in crate::records) fn has_keys(&self) -> DatabaseResult<bool> {
        match &self.0 {
            DatabaseConnection::Sqlite(_) => {
                self.exists("SELECT 1 FROM sqlite_schema WHERE name = 'keys'", &[])
            }
            DatabaseConnection::Postgres(_) => Ok(self.version()? > 0),
        }
    }
}
