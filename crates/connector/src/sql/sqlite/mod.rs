//! SQLite: a file that is opened to read, in which nothing but reading is authorized.

mod rows;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow_schema::Schema;
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use serde_json::{Map, Value};

use super::result::Limits;
use super::statement::StatementText;
use super::tables::TableColumn;

/// Steps of SQLite between two looks at whether a call has ended.
const STEPS: i32 = 1000;

/// End of a call's time.
struct SqliteEnd {
    stopped: Arc<AtomicBool>,
    until: Instant,
}

impl SqliteEnd {
    fn has_come(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Stops the statement of a call that is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens a database and works with it, outside the threads of the runtime.
pub(super) async fn blocking<T: Send + 'static>(
    path: &Path,
    limits: Limits,
    until: Instant,
    work: impl FnOnce(Sqlite) -> Result<T, ConnectorError> + Send + 'static,
) -> Result<T, ConnectorError> {
    let stop = Stop(Arc::default());
    let end = SqliteEnd {
        stopped: Arc::clone(&stop.0),
        until,
    };
    let path = path.to_owned();
    let worked = tokio::task::spawn_blocking(move || work(Sqlite::open(&path, limits, end)?)).await;
    drop(stop);
    worked.unwrap_or_else(|error| Err(ConnectorError::provider(format!("reading failed: {error}"))))
}

/// An open database.
pub(super) struct Sqlite(Connection);

impl Sqlite {
    fn open(path: &Path, limits: Limits, end: SqliteEnd) -> Result<Self, ConnectorError> {
        let opened = Self::opened(path, limits, end);
        opened.map_err(|error| {
            // The path is not for the sandbox.
            tracing::warn!(path = %path.display(), %error, "the database of a connector cannot be opened");
            let what = match &error {
                Error::SqliteFailure(cause, _) => cause.to_string(),
                _ => "it is not a database".to_owned(),
            };
            let text = format!("the database cannot be opened: {what}");
            ConnectorError::provider(text)
        })
    }

    fn opened(path: &Path, limits: Limits, end: SqliteEnd) -> rusqlite::Result<Self> {
        // Without URIs, which could name another file system or mode.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut database = Connection::open_with_flags(path, flags)?;
        database.pragma_update(None, "query_only", true)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // `"name"` is a column, never a text.
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        database.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        let length = i32::try_from(limits.max_result).unwrap_or(i32::MAX);
        database.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        let left = end.until.saturating_duration_since(Instant::now());
        database.busy_timeout(left)?;
        database.progress_handler(STEPS, Some(move || end.has_come()))?;
        Ok(Self(database))
    }

    /// Lets statements only read from now on.
    fn only_read(&mut self) -> Result<(), ConnectorError> {
        self.0
            .authorizer(Some(authorized))
            .map_err(|error| failed(&error))
    }

    /// Answers a call.
    pub(super) fn query(
        mut self,
        statement: &StatementText,
        arguments: &Map<String, Value>,
        limits: Limits,
    ) -> Result<FetchAnswer, ConnectorError> {
        self.only_read()?;
        rows::read(&self.0, statement, arguments, limits)
    }

    /// Returns the columns of statements whose types are known without running them.
    pub(super) fn described(
        &mut self,
        statements: &[StatementText],
    ) -> Result<Vec<Option<Schema>>, ConnectorError> {
        self.only_read()?;
        let described = statements.iter().map(|it| rows::described(&self.0, it).ok());
        Ok(described.collect())
    }

    /// Returns the columns of the tables.
    pub(super) fn tables(&self, most: usize) -> Result<Vec<TableColumn>, ConnectorError> {
        let sql = "select m.name, p.name, p.type from sqlite_schema m join pragma_table_info(m.name) p \
                   where m.type in ('table', 'view') and m.name not like 'sqlite\\_%' escape '\\' order \
                   by m.name, p.cid limit ?1";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let read = || {
            let mut statement = self.0.prepare(sql)?;
            let rows = statement.query_map([most], |row| {
                Ok(TableColumn {
                    table: row.get(0)?,
                    column: row.get(1)?,
                    kind: row.get(2)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| failed(&error))
    }

    pub(super) fn check(&self) -> Result<(), ConnectorError> {
        let read = self
            .0
            .query_row("select count(*) from sqlite_schema", [], |_| Ok(()));
        read.map_err(|error| failed(&error))
    }
}

/// Permits reading.
fn authorized(asked: AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// Returns the error of a statement, in words from which it can be repaired.
fn failed(error: &Error) -> ConnectorError {
    let (kind, text) = match error {
        Error::SqlInputError {
            error: cause,
            msg,
            sql,
            offset,
        } => {
            if cause.code == ErrorCode::AuthorizationForStatementDenied || msg.starts_with("not authorized") {
                let text = "the connector only reads: other statements, and functions that reach files, \
                            are not authorized";
                (ConnectorErrorKind::InvalidParameter, text.to_owned())
            } else {
                let at = usize::try_from(*offset).ok().and_then(|at| sql.get(at..));
                let near = at.map(|rest| rest.chars().take(30).collect::<String>());
                let near = near.filter(|near| !near.is_empty());
                let near = near.map_or_else(String::new, |near| format!(", at position {offset}: `{near}`"));
                (ConnectorErrorKind::InvalidParameter, format!("{msg}{near}"))
            }
        }
        Error::MultipleStatement => (
            ConnectorErrorKind::InvalidParameter,
            "the statement has two statements; a call runs one".to_owned(),
        ),
        Error::SqliteFailure(cause, message) => match cause.code {
            ErrorCode::OperationInterrupted => return timed_out(),
            ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly => (
                ConnectorErrorKind::InvalidParameter,
                "the connector only reads: the statement would write, or reach another file".to_owned(),
            ),
            ErrorCode::TooBig => (
                ConnectorErrorKind::Provider { status: None },
                "a value is larger than the limit `max_result`; select less".to_owned(),
            ),
            ErrorCode::Unknown => (
                ConnectorErrorKind::InvalidParameter,
                message.clone().unwrap_or_else(|| cause.to_string()),
            ),
            _ => (
                ConnectorErrorKind::Provider { status: None },
                message.clone().unwrap_or_else(|| cause.to_string()),
            ),
        },
        other => (ConnectorErrorKind::Provider { status: None }, other.to_string()),
    };
    ConnectorError::new(kind, text)
}

fn timed_out() -> ConnectorError {
    let text =
        "the statement took longer than the limit `timeout`, or than the cell; select less, or use an index";
    ConnectorError::new(ConnectorErrorKind::Timeout, text)
}
