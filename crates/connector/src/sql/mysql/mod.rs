//! MySQL and MariaDB: each call is a connection, and a transaction that only reads.

mod rows;
mod session;

use std::time::Instant;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use mysql_async::Error;
use mysql_async::prelude::Queryable as _;
use serde_json::{Map, Value};

use super::describe::Description;
use super::dial::unreachable;
use super::result::Limits;
use super::statement::StatementText;
use super::tables::TableColumn;
use super::target::ServerTarget;
use session::Session;

pub(super) async fn query(
    server: &ServerTarget,
    rendered: &StatementText,
    arguments: &Map<String, Value>,
    limits: Limits,
    until: Instant,
) -> Result<FetchAnswer, ConnectorError> {
    let mut session = Session::open(server, limits.max_result, until).await?;
    let answer = rows::read(session.connection()?, rendered, arguments, limits).await;
    session.close(answer.is_ok()).await;
    answer
}

pub(super) async fn check(server: &ServerTarget, until: Instant) -> Result<(), ConnectorError> {
    let mut session = Session::open(server, 1 << 20, until).await?;
    let answered = session.connection()?.query_drop("select 1").await;
    session.close(true).await;
    answered.map_err(|error| failed(&error))
}

/// Returns the columns of statements, and of at most so many columns of tables.
pub(super) async fn describe(
    server: &ServerTarget,
    statements: &[StatementText],
    most: usize,
    until: Instant,
) -> Result<Description, ConnectorError> {
    let mut session = Session::open(server, 16 << 20, until).await?;
    let connection = session.connection()?;
    let mut description = Description::default();
    if most > 0 {
        let sql = "select table_name, column_name, column_type from information_schema.columns \
                   where table_schema = database() order by table_name, ordinal_position limit ?";
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let columns = connection.exec_map(sql, (most,), |(table, column, kind)| TableColumn {
            table,
            column,
            kind,
        });
        description.tables = columns.await.map_err(|error| failed(&error))?;
    }
    for rendered in statements {
        let described = rows::described(connection, rendered).await;
        description.statements.push(described.ok());
    }
    session.close(true).await;
    Ok(description)
}

/// Whether a row was larger than the connection permits. Its codec's error is hidden in one of reading.
fn is_of_large_row(error: &Error) -> bool {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| cause.to_string().ends_with("larger than max_allowed_packet"))
}

/// Returns the error of a statement, in words from which it can be repaired.
fn failed(error: &Error) -> ConnectorError {
    let Error::Server(server) = error else {
        if is_of_large_row(error) {
            let text = "a row is larger than the limit `max_result`; select fewer columns, or parts of them";
            return ConnectorError::provider(text);
        }
        return unreachable(error);
    };
    let kind = match server.code {
        // Interrupted, or out of time.
        1317 | 1969 | 3024 => {
            let text = "the statement took longer than the limit `timeout`, or than the cell; select \
                        less, or use an index";
            return ConnectorError::new(ConnectorErrorKind::Timeout, text);
        }
        1044 | 1045 | 1698 => ConnectorErrorKind::Unauthorized,
        // Connections, memory and the disk.
        1040 | 1041 | 1021 | 1037 | 1038 | 1053 | 1203 | 1226 => {
            ConnectorErrorKind::Provider { status: None }
        }
        _ => ConnectorErrorKind::InvalidParameter,
    };
    let text = match server.code {
        1792 => format!("the connector only reads: {}", server.message),
        code => format!("{} ({code})", server.message),
    };
    ConnectorError::new(kind, text)
}
