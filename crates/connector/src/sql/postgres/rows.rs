//! The rows of a statement.

use std::pin::pin;
use std::sync::atomic::Ordering;

use arrow_schema::{DataType, Schema};
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use futures_util::TryStreamExt as _;
use serde_json::{Map, Value};
use tokio_postgres::types::Kind;
use tokio_postgres::{Error, Statement};

use super::argument::Argument;
use super::failed;
use super::session::Session;
use super::value::{Form, Raw, form};
use crate::sql::cells::Cell;
use crate::sql::result::{Limits, ResultRows, schema};
use crate::sql::statement::StatementText;

/// A statement whose columns can all be read.
struct PreparedQuery {
    statement: Statement,
    /// Prepared statement, which errors quote.
    sql: String,
    forms: Vec<(Form, DataType)>,
    schema: Schema,
}

pub(super) async fn described(session: &Session, rendered: &StatementText) -> Result<Schema, ConnectorError> {
    Ok(prepared(session, rendered).await?.schema)
}

/// Prepares a statement, which the server does for one alone. Columns of types without a form of
/// their own are converted by the server, in a statement around it.
async fn prepared(session: &Session, rendered: &StatementText) -> Result<PreparedQuery, ConnectorError> {
    let invalid = |text: &str| ConnectorError::new(ConnectorErrorKind::InvalidParameter, text);
    let mut sql = rendered.sql.clone();
    let mut statement = prepare(session, &sql).await?;
    let names = statement.columns().iter().map(|column| column.name().to_owned());
    // Also rejects statements that return nothing, such as `copy`, before they run.
    schema(names.map(|name| (name, DataType::Utf8)).collect())?;
    if statement.columns().iter().any(|column| form(column).is_none()) {
        let columns = statement.columns().iter().map(|column| {
            let name = format!("\"{}\"", column.name().replace('"', "\"\""));
            match (form(column), column.type_().kind()) {
                (Some(_), _) => format!("q.{name}"),
                (None, Kind::Array(_)) => format!("pg_catalog.to_json(q.{name})::text as {name}"),
                (None, _) => format!("q.{name}::text as {name}"),
            }
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        // A comment may end the statement, so that the parenthesis is on its own line.
        sql = format!("select {columns} from ({}\n) as q", rendered.sql);
        statement = prepare(session, &sql).await?;
    }
    let forms = statement.columns().iter().map(form);
    let forms: Option<Vec<_>> = forms.collect();
    let forms = forms.ok_or_else(|| invalid("a column has a type that cannot be read; cast it to text"))?;
    if statement.params().len() != rendered.placeholders.len() {
        return Err(invalid(
            "the statement has a parameter that is not of the form `:name`",
        ));
    }
    let columns = statement.columns().iter().zip(&forms);
    let columns = columns.map(|(column, (_, kind))| (column.name().to_owned(), kind.clone()));
    Ok(PreparedQuery {
        schema: schema(columns.collect())?,
        statement,
        sql,
        forms,
    })
}

async fn prepare(session: &Session, sql: &str) -> Result<Statement, ConnectorError> {
    let prepared = session.client.prepare(sql).await;
    prepared.map_err(|error| failed(&error, sql))
}

pub(super) async fn read(
    session: &Session,
    rendered: &StatementText,
    arguments: &Map<String, Value>,
    limits: Limits,
) -> Result<FetchAnswer, ConnectorError> {
    let PreparedQuery {
        statement,
        sql,
        forms,
        schema,
    } = prepared(session, rendered).await?;
    let values = rendered.placeholders.iter();
    let values = values.map(|name| Argument(arguments.get(name).unwrap_or(&Value::Null)));
    let rows = session
        .client
        .query_raw(&statement, values.collect::<Vec<_>>())
        .await;
    let mut rows = pin!(rows.map_err(|error| failed(&error, &sql))?);
    session.streams.store(true, Ordering::Relaxed);
    let mut result = ResultRows::new(schema, limits)?;
    let mut rooms = vec![String::new(); forms.len()];
    let ended = |error: &Error| {
        session.streams.store(false, Ordering::Relaxed);
        failed(error, &sql)
    };
    while let Some(row) = rows.try_next().await.map_err(|error| ended(&error))? {
        let cells = forms.iter().zip(&mut rooms).enumerate();
        result.push(cells.map(|(at, ((form, kind), room))| {
            let raw: Option<Raw<'_>> = row.try_get(at).map_err(|error| error.to_string())?;
            raw.map_or(Ok(Cell::Null), |raw| form.cell(raw.0, kind, room))
        }))?;
    }
    session.streams.store(false, Ordering::Relaxed);
    result.finish()
}
