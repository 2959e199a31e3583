//! Connectors and their answers, as texts.

use std::path::Path;
use std::time::{Duration, Instant};

use cellblock_connector::{SqlConnector, TypeOptions};
use cellblock_interpreter::connector::{Connector as _, ConnectorErrorKind};
use serde_json::{Map, Value, json};

use crate::table;

/// A connector with the function `sql`, and other options.
pub(crate) fn connector(url: &str, folder: &Path, more: &Value) -> SqlConnector {
    let mut options = json!({"url": {"env": "URL"}, "free_sql": true, "allow_private": true});
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    let options = TypeOptions::read(&options).unwrap();
    SqlConnector::new("warehouse", &options, Some(url), folder).unwrap()
}

/// A table as text.
#[derive(Debug, PartialEq)]
pub(crate) struct TextTable {
    /// Names and types of the columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<String>,
}

pub(crate) type Failure = (ConnectorErrorKind, String);

/// Calls a function.
pub(crate) async fn call(
    connector: &SqlConnector,
    function: &str,
    arguments: Value,
) -> Result<TextTable, Failure> {
    let Value::Object(arguments) = arguments else {
        panic!("no arguments")
    };
    let until = Instant::now() + Duration::from_mins(1);
    let answer = connector.fetch(function, arguments, until).await;
    let answer = answer.map_err(|error| (error.kind(), error.to_string()))?;
    let (schema, rows) = table::rows(answer, "|");
    let columns = schema.fields().iter();
    let columns = columns
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    Ok(TextTable { columns, rows })
}

/// Runs a statement.
pub(crate) async fn sql(connector: &SqlConnector, statement: &str) -> Result<TextTable, Failure> {
    with(connector, statement, json!({})).await
}

/// Runs a statement with arguments.
pub(crate) async fn with(
    connector: &SqlConnector,
    statement: &str,
    arguments: Value,
) -> Result<TextTable, Failure> {
    let mut all = Map::new();
    all.insert("statement".to_owned(), statement.into());
    all.extend(arguments.as_object().unwrap().clone());
    call(connector, "sql", Value::Object(all)).await
}

/// Checks that a statement is refused, and returns why.
pub(crate) async fn refused(connector: &SqlConnector, statement: &str) -> String {
    match sql(connector, statement).await {
        Ok(table) => panic!("`{statement}` ran: {table:?}"),
        Err((_, text)) => text,
    }
}

/// Checks that a statement is refused with these words.
pub(crate) async fn rejects(connector: &SqlConnector, statement: &str, words: &str) {
    let text = refused(connector, statement).await;
    assert!(text.contains(words), "{statement}: {text}");
}
