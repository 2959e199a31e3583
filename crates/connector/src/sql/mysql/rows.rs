//! The rows of a statement.

use arrow_schema::{DataType, Schema};
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use chrono::NaiveDate;
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Column, Conn, Params, Statement, Value as Stored};
use serde_json::{Map, Value};

use super::failed;
use crate::sql::cells::{Cell, LOCAL, decimal, unscaled, utc};
use crate::sql::result::{Limits, ResultRows, schema};
use crate::sql::statement::StatementText;

/// The character set of bytes.
const BINARY: u16 = 63;

pub(super) async fn described(
    connection: &mut Conn,
    rendered: &StatementText,
) -> Result<Schema, ConnectorError> {
    Ok(prepared(connection, rendered).await?.1)
}

/// Prepares a statement, which the server does for one alone. One that returns nothing, such as
/// `select … into outfile`, is rejected before it runs.
async fn prepared(
    connection: &mut Conn,
    rendered: &StatementText,
) -> Result<(Statement, Schema), ConnectorError> {
    let statement = connection.prep(rendered.sql.as_str()).await;
    let statement = statement.map_err(|error| failed(&error))?;
    let columns = statement.columns();
    let columns = columns
        .iter()
        .map(|column| (column.name_str().into_owned(), kind(column)));
    let schema = schema(columns.collect())?;
    if usize::from(statement.num_params()) != rendered.placeholders.len() {
        let text = "the statement has a parameter that is not of the form `:name`";
        return Err(ConnectorError::new(ConnectorErrorKind::InvalidParameter, text));
    }
    Ok((statement, schema))
}

pub(super) async fn read(
    connection: &mut Conn,
    rendered: &StatementText,
    arguments: &Map<String, Value>,
    limits: Limits,
) -> Result<FetchAnswer, ConnectorError> {
    let (statement, schema) = prepared(connection, rendered).await?;
    let values = rendered.placeholders.iter();
    let values: Vec<Stored> = values
        .map(|name| bound(arguments.get(name).unwrap_or(&Value::Null)))
        .collect();
    let values = if values.is_empty() {
        Params::Empty
    } else {
        Params::Positional(values)
    };
    let kinds: Vec<DataType> = schema
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    let mut result = ResultRows::new(schema, limits)?;
    let mut rows = connection
        .exec_iter(&statement, values)
        .await
        .map_err(|error| failed(&error))?;
    let mut rooms = vec![String::new(); kinds.len()];
    while let Some(row) = rows.next().await.map_err(|error| failed(&error))? {
        let values = row.unwrap();
        let cells = values.iter().zip(kinds.iter().zip(&mut rooms));
        result.push(cells.map(|(value, (kind, room))| cell(value, kind, room)))?;
    }
    result.finish()
}

/// Returns a value to bind. Lists and objects are JSON text.
fn bound(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::NULL,
        Value::Bool(value) => Stored::Int((*value).into()),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Stored::Int(number),
            (None, Some(number), _) => Stored::UInt(number),
            (None, None, Some(number)) => Stored::Double(number),
            (None, None, None) => Stored::from(number.to_string()),
        },
        Value::String(text) => Stored::from(text.as_str()),
        other => Stored::from(other.to_string()),
    }
}

/// Returns the type of a column.
fn kind(column: &Column) -> DataType {
    let unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
    match column.column_type() {
        ColumnType::MYSQL_TYPE_LONGLONG if unsigned => DataType::UInt64,
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_LONGLONG
        | ColumnType::MYSQL_TYPE_YEAR => DataType::Int64,
        ColumnType::MYSQL_TYPE_FLOAT => DataType::Float32,
        ColumnType::MYSQL_TYPE_DOUBLE => DataType::Float64,
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            let scale = u32::from(column.decimals());
            // The length counts the sign and the point.
            let marks = u32::from(!unsigned) + u32::from(scale > 0);
            decimal(column.column_length().saturating_sub(marks), scale)
        }
        ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => DataType::Date32,
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_DATETIME2 => LOCAL,
        ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => utc(),
        // A duration of up to 838 hours.
        ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_TIME2 | ColumnType::MYSQL_TYPE_JSON => {
            DataType::Utf8
        }
        ColumnType::MYSQL_TYPE_BIT | ColumnType::MYSQL_TYPE_GEOMETRY => DataType::Binary,
        ColumnType::MYSQL_TYPE_NULL => DataType::Utf8,
        _ if column.character_set() == BINARY => DataType::Binary,
        _ => DataType::Utf8,
    }
}

/// Reads a value; texts that have no bytes of their own are written to `room`.
fn cell<'a>(value: &'a Stored, kind: &DataType, room: &'a mut String) -> Result<Cell<'a>, String> {
    Ok(match (value, kind) {
        (Stored::NULL, _) => Cell::Null,
        (Stored::Int(value), DataType::UInt64) => Cell::UInt((*value).cast_unsigned()),
        (Stored::UInt(value), DataType::UInt64) => Cell::UInt(*value),
        (Stored::Int(value), _) => Cell::Int(*value),
        (Stored::UInt(value), _) => {
            Cell::Int(i64::try_from(*value).map_err(|_| format!("the value {value} is too large"))?)
        }
        (Stored::Float(value), _) => Cell::Float32(*value),
        (Stored::Double(value), _) => Cell::Float(*value),
        (Stored::Bytes(bytes), DataType::Binary) => Cell::Bytes(bytes),
        (Stored::Bytes(bytes), kind) => {
            let text = str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())?;
            match kind {
                DataType::Decimal128(_, scale) => {
                    let value = unscaled(text, *scale);
                    Cell::Decimal(value.ok_or_else(|| format!("the value {text} is not a decimal number"))?)
                }
                _ => Cell::Text(text),
            }
        }
        (Stored::Date(year, month, day, hour, minute, second, micros), kind) => {
            let date = NaiveDate::from_ymd_opt((*year).into(), (*month).into(), (*day).into());
            let time = date.and_then(|date| {
                date.and_hms_micro_opt((*hour).into(), (*minute).into(), (*second).into(), *micros)
            });
            let time = time.ok_or_else(|| format!("{year:04}-{month:02}-{day:02} is not a date"))?;
            let micros = time.and_utc().timestamp_micros();
            match kind {
                DataType::Date32 => {
                    let days = micros.div_euclid(86_400_000_000);
                    Cell::Date(i32::try_from(days).map_err(|error| error.to_string())?)
                }
                _ => Cell::Timestamp(micros),
            }
        }
        (Stored::Time(negative, days, hours, minutes, seconds, micros), _) => {
            let sign = if *negative { "-" } else { "" };
            let hours = days * 24 + u32::from(*hours);
            *room = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}");
            Cell::Text(room.trim_end_matches(".000000"))
        }
    })
}
