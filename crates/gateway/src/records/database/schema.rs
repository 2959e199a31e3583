//! The schema, and how it grows: by the files in `migrations/`, in order. A database counts those that were applied.
//!
//! They are written for `SQLite`, with its types. A line that begins with `-- postgres: ` is for Postgres alone, and what
//! is between `/* sqlite: */` and `/* :sqlite */` for `SQLite`.

use super::{Connected, Database, DatabaseResult, params};

/// The steps of the schema, oldest first. Steps that were released do not change any more.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/responses.sql"),
    include_str!("../migrations/artifacts.sql"),
    include_str!("../migrations/keys.sql"),
    include_str!("../migrations/usage.sql"),
    include_str!("../migrations/containers.sql"),
    include_str!("../migrations/files.sql"),
    include_str!("../migrations/evidence.sql"),
    include_str!("../migrations/results.sql"),
    include_str!("../migrations/container_keys.sql"),
    include_str!("../migrations/conversations.sql"),
    include_str!("../migrations/automatic.sql"),
    include_str!("../migrations/key_connectors.sql"),
    include_str!("../migrations/fetches.sql"),
    include_str!("../migrations/key_minimum_backend.sql"),
    include_str!("../migrations/key_max_network.sql"),
    include_str!("../migrations/gateways.sql"),
    include_str!("../migrations/volumes.sql"),
    include_str!("../migrations/replicas.sql"),
    include_str!("../migrations/runs.sql"),
    include_str!("../migrations/homes.sql"),
    include_str!("../migrations/key_admin.sql"),
    include_str!("../migrations/stored.sql"),
    include_str!("../migrations/stored_text.sql"),
    include_str!("../migrations/layers.sql"),
];

/// Words of `SQLite` in the migrations, and those of Postgres.
const WORDS: &[(&str, &str)] = &[
    (
        "INTEGER PRIMARY KEY AUTOINCREMENT",
        "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    ),
    ("INTEGER", "BIGINT"),
    ("BLOB", "BYTEA"),
    (") VIRTUAL;", ") STORED;"),
    (") STRICT, WITHOUT ROWID;", ");"),
    (") STRICT;", ");"),
    ("-- postgres: ", ""),
    ("/* sqlite: */", "/*"),
    ("/* :sqlite */", "*/"),
];

/// The version of the schema that all migrations lead to.
pub(in crate::records) fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Returns a migration as Postgres understands it.
fn for_postgres(step: &str) -> String {
    let translate = |step: String, (from, to): &(&str, &str)| step.replace(from, to);
    WORDS.iter().fold(step.to_owned(), translate)
}

impl Database {
    /// Returns the version of the schema of this database: 0 if there is none yet.
    pub(in crate::records) fn version(&self) -> DatabaseResult<u32> {
        let version = match &self.0 {
            Connected::Sqlite(connection) => {
                return Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?);
            }
            Connected::Postgres(_) => {
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

    /// Brings the schema up to date. Processes that start at the same time apply each step once. Returns the version that was found: if it is
    /// newer than the known one, nothing has been changed.
    pub(in crate::records) fn migrate(&mut self) -> DatabaseResult<u32> {
        self.migrate_to(known())
    }

    /// The same up to a version.
    pub(in crate::records) fn migrate_to(&mut self, wanted: u32) -> DatabaseResult<u32> {
        if let Connected::Sqlite(_) = &self.0 {
            let transaction = self.transaction()?;
            let found = transaction.version()?;
            for step in MIGRATIONS.iter().take(wanted as usize).skip(found as usize) {
                transaction.batch(step)?;
            }
            if found < wanted {
                transaction.batch(&format!("PRAGMA user_version = {wanted}"))?;
            }
            transaction.commit()?;
            return Ok(found);
        }
        let transaction = self.transaction()?;
        transaction.lock("schema")?;
        let found = transaction.version()?;
        if found < wanted {
            transaction.batch("CREATE TABLE IF NOT EXISTS cellblock_schema (version BIGINT NOT NULL)")?;
            for step in MIGRATIONS.iter().take(wanted as usize).skip(found as usize) {
                transaction.batch(&for_postgres(step))?;
            }
            transaction.batch("DELETE FROM cellblock_schema")?;
            let insert = "INSERT INTO cellblock_schema (version) VALUES (?1)";
            transaction.execute(insert, params![i64::from(wanted)])?;
        }
        transaction.commit()?;
        Ok(found)
    }

    /// Returns whether there is a table for keys, without which there can be no keys.
    pub(in crate::records) fn has_keys(&self) -> DatabaseResult<bool> {
        match &self.0 {
            Connected::Sqlite(_) => self.exists("SELECT 1 FROM sqlite_schema WHERE name = 'keys'", &[]),
            Connected::Postgres(_) => Ok(self.version()? > 0),
        }
    }
}
