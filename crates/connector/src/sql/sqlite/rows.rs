//! Rows of SQLite. Its values have types, its columns do not: a column gets the type of its first values.

use arrow_schema::{DataType, Schema};
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use rusqlite::types::{ToSqlOutput, Value as Stored, ValueRef};
use rusqlite::{Connection, Statement};
use serde_json::{Map, Value};

use super::failed;
use crate::sql::cells::{Cell, LOCAL, utc};
use crate::sql::result::{Limits, ResultRows, schema};
use crate::sql::statement::StatementText;

/// Rows from which types are inferred, and about how many bytes of them.
const INFERRED: usize = 10_000;
const INFERRED_BYTES: usize = 8 << 20;
/// Whole numbers up to this are the same as floating-point numbers.
const EXACT: u64 = 1 << 53;

pub(super) fn read(
    database: &Connection,
    rendered: &StatementText,
    arguments: &Map<String, Value>,
    limits: Limits,
) -> Result<FetchAnswer, ConnectorError> {
    let mut statement = prepared(database, rendered)?;
    for name in &rendered.placeholders {
        let value = bound(arguments.get(name).unwrap_or(&Value::Null));
        let place = place(name, &statement)?;
        statement
            .raw_bind_parameter(place, value)
            .map_err(|error| failed(&error))?;
    }
    let columns = columns(&statement);
    let count = columns.len();
    let mut rows = statement.raw_query();
    let mut first: Vec<Vec<Stored>> = Vec::new();
    let (mut bytes, mut whole) = (0, false);
    while first.len() < INFERRED && bytes < INFERRED_BYTES {
        let Some(row) = rows.next().map_err(|error| failed(&error))? else {
            whole = true;
            break;
        };
        let values = (0..count).map(|at| row.get_ref(at).map(Stored::try_from));
        let values: Result<Result<Vec<Stored>, _>, _> = values.collect();
        let values = values.map_err(|error| failed(&error))?;
        let values = values.map_err(|_| not_utf8())?;
        bytes += values.iter().map(size).sum::<usize>();
        first.push(values);
    }
    let kinds = columns.iter().enumerate().map(|(at, (name, declared))| {
        let values: Vec<_> = first.iter().map(|row| &row[at]).collect();
        let kind = kind(&values, declared.as_deref()).map_err(|problem| {
            let text =
                format!("the column `{name}` {problem}; convert it in SQL, such as `cast({name} as text)`");
            ConnectorError::new(ConnectorErrorKind::Parse, text)
        })?;
        Ok((name.clone(), kind))
    });
    let kinds = kinds.collect::<Result<Vec<_>, ConnectorError>>()?;
    let types: Vec<DataType> = kinds.iter().map(|(_, kind)| kind.clone()).collect();
    let mut result = ResultRows::new(schema(kinds)?, limits)?;
    for row in &first {
        let cells = row.iter().zip(&types);
        result.push(cells.map(|(value, kind)| Ok(cell(value.into(), kind)?)))?;
    }
    if whole {
        return result.finish();
    }
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        let cells = types.iter().enumerate().map(|(at, kind)| {
            let value = row.get_ref(at).map_err(|error| error.to_string())?;
            Ok(cell(value, kind)?)
        });
        result.push(cells)?;
    }
    result.finish()
}

/// Returns the columns of a statement, if all their types are declared.
pub(super) fn described(database: &Connection, rendered: &StatementText) -> Result<Schema, ConnectorError> {
    let statement = prepared(database, rendered)?;
    let columns = columns(&statement).into_iter().map(|(name, declared)| {
        let kind = kind(&[], declared.as_deref()).unwrap_or(DataType::Utf8);
        (name, kind)
    });
    schema(columns.collect())
}

fn prepared<'a>(database: &'a Connection, rendered: &StatementText) -> Result<Statement<'a>, ConnectorError> {
    let statement = database.prepare(&rendered.sql).map_err(|error| failed(&error))?;
    let invalid = |text: &str| ConnectorError::new(ConnectorErrorKind::InvalidParameter, text);
    if !statement.readonly() {
        return Err(invalid("the connector only reads: the statement would write"));
    }
    if statement.parameter_count() != rendered.placeholders.len() {
        return Err(invalid(
            "the statement has a parameter that is not of the form `:name`",
        ));
    }
    Ok(statement)
}

fn place(name: &str, statement: &Statement<'_>) -> Result<usize, ConnectorError> {
    let index = statement.parameter_index(&format!(":{name}"));
    index.ok().flatten().ok_or_else(|| {
        let text = format!("the statement has a parameter that is not of the form `:{name}`");
        ConnectorError::new(ConnectorErrorKind::InvalidParameter, text)
    })
}

/// Returns the names of the columns, and the types that their tables declare.
fn columns(statement: &Statement<'_>) -> Vec<(String, Option<String>)> {
    let columns = statement.columns();
    columns
        .map(|column| {
            let declared = column.decl_type().map(str::to_ascii_uppercase);
            (column.name().to_owned(), declared)
        })
        .collect()
}

/// Returns a value to bind. Lists and objects are JSON text.
fn bound(value: &Value) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(match value {
        Value::Null => Stored::Null,
        Value::Bool(value) => Stored::Integer((*value).into()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Stored::Integer(number),
            (None, Some(number)) => Stored::Real(number),
            (None, None) => Stored::Text(number.to_string()),
        },
        Value::String(text) => Stored::Text(text.clone()),
        other => Stored::Text(other.to_string()),
    })
}

fn size(value: &Stored) -> usize {
    match value {
        Stored::Text(text) => text.len(),
        Stored::Blob(bytes) => bytes.len(),
        _ => 8,
    }
}

/// Returns the type of a column: by its values, and by its declaration where these allow several,
/// or are missing.
fn kind(values: &[&Stored], declared: Option<&str>) -> Result<DataType, String> {
    let declared = declared.unwrap_or_default();
    let says = |word: &str| declared.contains(word);
    let present = || values.iter().copied().filter(|value| **value != Stored::Null);
    let all = |fits: fn(&Stored) -> bool| present().all(fits);
    let is_time = says("DATETIME") || says("TIMESTAMP");
    if says("BOOL") && all(|value| matches!(value, Stored::Integer(0 | 1))) {
        return Ok(DataType::Boolean);
    }
    if is_time && all(|value| text(value).and_then(local).is_some()) {
        return Ok(LOCAL);
    }
    if is_time && all(|value| text(value).and_then(instant).is_some()) {
        return Ok(utc());
    }
    if declared == "DATE" && all(|value| text(value).and_then(date).is_some()) {
        return Ok(DataType::Date32);
    }
    if present().next().is_none() {
        // As SQLite reads declarations.
        return Ok(match () {
            () if says("INT") => DataType::Int64,
            () if says("CHAR") || says("CLOB") || says("TEXT") => DataType::Utf8,
            () if says("BLOB") => DataType::Binary,
            () if says("REAL") || says("FLOA") || says("DOUB") => DataType::Float64,
            () => DataType::Utf8,
        });
    }
    let real = says("REAL") || says("FLOA") || says("DOUB");
    if !real && all(|value| matches!(value, Stored::Integer(_))) {
        return Ok(DataType::Int64);
    }
    if all(|value| float(&ValueRef::from(value)).is_some()) {
        return Ok(DataType::Float64);
    }
    if all(|value| matches!(value, Stored::Text(_))) {
        return Ok(DataType::Utf8);
    }
    if all(|value| matches!(value, Stored::Blob(_))) {
        return Ok(DataType::Binary);
    }
    let mut names: Vec<_> = present().map(name_of).collect();
    names.dedup();
    names.truncate(2);
    Err(format!(
        "has values of different types, such as {}",
        names.join(" and ")
    ))
}

const fn name_of(value: &Stored) -> &'static str {
    match value {
        Stored::Null => "null",
        Stored::Integer(_) => "an integer",
        Stored::Real(_) => "a real number",
        Stored::Text(_) => "a text",
        Stored::Blob(_) => "bytes",
    }
}

fn cell<'a>(value: ValueRef<'a>, kind: &DataType) -> Result<Cell<'a>, &'static str> {
    if let ValueRef::Text(bytes) = value {
        let text = str::from_utf8(bytes).map_err(|_| NOT_UTF8)?;
        return Ok(match kind {
            DataType::Date32 => date(text).map_or(Cell::Text(text), Cell::Date),
            DataType::Timestamp(_, None) => local(text).map_or(Cell::Text(text), Cell::Timestamp),
            DataType::Timestamp(_, Some(_)) => instant(text).map_or(Cell::Text(text), Cell::Timestamp),
            _ => Cell::Text(text),
        });
    }
    Ok(match (value, kind) {
        (ValueRef::Null, _) => Cell::Null,
        (ValueRef::Integer(value @ (0 | 1)), DataType::Boolean) => Cell::Bool(value == 1),
        (value, DataType::Float64) if float(&value).is_some() => {
            Cell::Float(float(&value).unwrap_or_default())
        }
        (ValueRef::Integer(value), _) => Cell::Int(value),
        (ValueRef::Real(value), _) => Cell::Float(value),
        (ValueRef::Text(bytes) | ValueRef::Blob(bytes), _) => Cell::Bytes(bytes),
    })
}

/// Returns a number as a floating-point number, if that is exact.
fn float(value: &ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Real(value) => Some(*value),
        #[expect(clippy::cast_precision_loss, reason = "it has few enough bits")]
        ValueRef::Integer(value) if value.unsigned_abs() <= EXACT => Some(*value as f64),
        _ => None,
    }
}

fn text(value: &Stored) -> Option<&str> {
    match value {
        Stored::Text(text) => Some(text),
        _ => None,
    }
}

fn date(text: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

/// Reads a time without a zone.
fn local(text: &str) -> Option<i64> {
    let forms = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    let time = forms
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())?;
    Some(time.and_utc().timestamp_micros())
}

/// Reads a time with a zone.
fn instant(text: &str) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.timestamp_micros())
}

const NOT_UTF8: &str = "has a text that is not UTF-8";

fn not_utf8() -> ConnectorError {
    ConnectorError::new(
        ConnectorErrorKind::Parse,
        "the answer has a text that is not UTF-8; read it as bytes with `cast(… as blob)`",
    )
}
