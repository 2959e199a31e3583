//! Replacement of Postgres in a build without the feature `postgres`: nothing, since no URL is accepted.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::path::Path;
use std::time::Duration;

use cellblock_settings::MissingFeature;

use super::url::{InvalidPostgresUrl, RootsError};
use super::{Database, DatabaseConnection, DatabaseResult, DatabaseValue};
use crate::records::RecordsError;

pub(in crate::records) use NoPostgres as PostgresError;
pub(in crate::records) use NoPostgres as PostgresPool;
pub(in crate::records) use NoPostgres as PostgresRow;
pub(super) use NoPostgres as PostgresSession;
pub use NoPostgres as PostgresUrl;
// The bounds that SQLite has already.
pub(in crate::records) use rusqlite::RowIndex as PostgresIndex;
pub use rusqlite::types::FromSql as FromPostgres;

/// Never exists.
#[derive(Clone, Debug)]
pub struct NoPostgres {
    never: Infallible,
}

impl NoPostgres {
    /// Fails: a text is not the URL of a database, or needs another build.
    pub fn new(text: &str, _: &Path) -> Result<Self, InvalidPostgresUrl> {
        InvalidPostgresUrl::unless_named(text.trim())?;
        let missing = MissingFeature("postgres").to_string();
        Err(InvalidPostgresUrl(missing.into()))
    }

    /// Whether the URL contains a password.
    pub fn has_password(&self) -> bool {
        match self.never {}
    }

    pub(in crate::records) fn pool(&self, _: Duration) -> Result<Self, RootsError> {
        match self.never {}
    }

    pub(in crate::records) fn place(&self) -> &str {
        match self.never {}
    }

    pub(in crate::records) fn connection(&self) -> Ready<Result<Database, RecordsError>> {
        let never = self.never;
        ready(Ok(Database(DatabaseConnection::Postgres(Self { never }))))
    }

    pub(super) fn execute(&self, _: &str, _: &[DatabaseValue<'_>]) -> DatabaseResult<u64> {
        match self.never {}
    }

    pub(super) fn query(&self, _: &str, _: &[DatabaseValue<'_>]) -> DatabaseResult<Vec<Self>> {
        match self.never {}
    }

    pub(super) fn batch(&self, _: &str) -> DatabaseResult<()> {
        match self.never {}
    }

    pub(super) fn roll_back(&self) {
        match self.never {}
    }

    pub(super) fn try_get<T>(&self, _: impl PostgresIndex) -> Result<T, Self> {
        match self.never {}
    }
}

impl fmt::Display for NoPostgres {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}

impl std::error::Error for NoPostgres {}

pub(in crate::records) fn is_lost(error: &PostgresError) -> bool {
    match error.never {}
}

pub(in crate::records) fn is_full(error: &PostgresError) -> bool {
    match error.never {}
}

pub(in crate::records) fn problem(error: &PostgresError) -> Option<&'static str> {
    match error.never {}
}
