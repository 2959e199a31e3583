//! Postgres: each call is a connection, and a transaction that only reads.

mod argument;
mod rows;
mod session;
mod value;
mod wire;

use std::error::Error as _;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use serde_json::{Map, Value};
use tokio_postgres::Error;
use tokio_postgres::error::{ErrorPosition, SqlState};

use super::describe::Description;
use super::dial::unreachable;
use super::result::Limits;
use super::statement::StatementText;
use super::tables::TableColumn;
use super::target::ServerTarget;
use session::Session;
use wire::LargeRow;

/// Characters of a statement that an error shows.
const NEAR: usize = 30;

pub(super) async fn query(
    server: &ServerTarget,
    rendered: &StatementText,
    arguments: &Map<String, Value>,
    limits: Limits,
    until: Instant,
) -> Result<FetchAnswer, ConnectorError> {
    let mut session = Session::open(server, limits.max_result, until).await?;
    let answer = rows::read(&session, rendered, arguments, limits).await;
    if let Some(error) = session.broken().await {
        return Err(failed(&error, ""));
    }
    // Otherwise, the statement is canceled.
    if !session.streams.load(Ordering::Relaxed) {
        session.close().await;
    }
    answer
}

pub(super) async fn check(server: &ServerTarget, until: Instant) -> Result<(), ConnectorError> {
    let session = Session::open(server, 1 << 20, until).await?;
    let answered = session.client.batch_execute("select 1").await;
    session.close().await;
    answered.map_err(|error| failed(&error, "select 1"))
}

/// Returns the columns of statements, and of at most so many columns of tables.
pub(super) async fn describe(
    server: &ServerTarget,
    statements: &[StatementText],
    most: usize,
    until: Instant,
) -> Result<Description, ConnectorError> {
    let session = Session::open(server, 16 << 20, until).await?;
    let mut description = Description::default();
    if most > 0 {
        description.tables = tables(&session, most).await?;
    }
    for rendered in statements {
        let described = rows::described(&session, rendered).await;
        description.statements.push(described.ok());
        // A statement that is wrong ends the transaction.
        session.begin_again(until).await?;
    }
    session.close().await;
    Ok(description)
}

async fn tables(session: &Session, most: usize) -> Result<Vec<TableColumn>, ConnectorError> {
    let sql = "select case when table_schema = 'public' then table_name else table_schema || '.' || \
               table_name end, column_name, case data_type when 'USER-DEFINED' then udt_name else \
               data_type end from information_schema.columns where table_schema not in \
               ('information_schema', 'pg_catalog') order by table_schema <> 'public', table_schema, \
               table_name, ordinal_position limit $1";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = session.client.query(sql, &[&most]).await;
    let rows = rows.map_err(|error| failed(&error, sql))?;
    let column = |row: &tokio_postgres::Row| {
        Ok(TableColumn {
            table: row.try_get(0)?,
            column: row.try_get(1)?,
            kind: row.try_get(2)?,
        })
    };
    let columns: Result<_, Error> = rows.iter().map(column).collect();
    columns.map_err(|error| failed(&error, sql))
}

/// Returns the error of a statement, in words from which it can be repaired.
fn failed(error: &Error, sql: &str) -> ConnectorError {
    let Some(database) = error.as_db_error() else {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        return match cause.and_then(io::Error::get_ref) {
            Some(large) if large.is::<LargeRow>() => ConnectorError::provider(large.to_string()),
            _ => unreachable(error),
        };
    };
    let code = database.code();
    let kind = match code {
        &SqlState::QUERY_CANCELED => {
            let text = "the statement took longer than the limit `timeout`, or than the cell; select \
                        less, or use an index";
            return ConnectorError::new(ConnectorErrorKind::Timeout, text);
        }
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            ConnectorErrorKind::Unauthorized
        }
        // Connections, resources, the operator's doing, and the system.
        code if ["08", "53", "57", "58", "XX"].contains(&&code.code()[..2]) => {
            ConnectorErrorKind::Provider { status: None }
        }
        _ => ConnectorErrorKind::InvalidParameter,
    };
    let mut text = match code {
        &SqlState::SYNTAX_ERROR if database.message().contains("multiple commands") => {
            "the statement has two statements; a call runs one".to_owned()
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => {
            format!("the connector only reads: {}", database.message())
        }
        code => format!("{} ({})", database.message(), code.code()),
    };
    if let Some(ErrorPosition::Original(position)) = database.position() {
        let start = usize::try_from(*position).unwrap_or(1).saturating_sub(1);
        let near: String = sql.chars().skip(start).take(NEAR).collect();
        if !near.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, ", at position {position}: `{near}`");
        }
    }
    for more in [database.detail(), database.hint()].into_iter().flatten() {
        let _ = write!(text, "; {more}");
    }
    ConnectorError::new(kind, text)
}
