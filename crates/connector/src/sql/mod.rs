//! Functions over databases: statements with bound parameters, in transactions that only read.

#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres")),
    expect(dead_code, reason = "some values are those of one kind of server")
)]
mod cells;
mod describe;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "the library of MySQL connects by itself")
)]
mod dial;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(not(all(feature = "mysql", feature = "postgres")))]
mod no_server;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod result;
mod sqlite;
mod statement;
mod tables;
mod target;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod tls;

use std::fmt;
use std::path::Path;
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, MIN_SECRET_BYTES,
    MemoPolicy, Redaction,
};
use cellblock_settings::Time;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::card;
use crate::options::{CallOptions, TypeOptions};
use crate::recipe::OptionMistake;
use describe::Descriptions;
#[cfg(not(feature = "mysql"))]
use no_server as mysql;
#[cfg(not(feature = "postgres"))]
use no_server as postgres;
use options::SqlFunction;
pub use options::SqlOptions;
use result::Limits;
use statement::{Statement, StatementText};
use target::{Dialect, Target};

/// The function that runs any statement, and its parameter.
const FREE: &str = "sql";
const STATEMENT: &str = "statement";

/// A connector of the type `sql`.
pub struct SqlConnector {
    name: String,
    calls: CallOptions,
    /// Missing if the URL has not been read.
    target: Option<Target>,
    limits: Limits,
    functions: IndexMap<String, Function>,
    free_sql: bool,
    descriptions: Descriptions,
    redaction: Redaction,
}

/// A statement that the operator wrote.
struct Function {
    card: Card,
    rendered: StatementText,
}

impl fmt::Debug for SqlConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlConnector")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl SqlConnector {
    /// Compiles a connector, whose paths count from `folder`. Without a URL, everything else is
    /// checked. Connects to nothing.
    pub fn new(
        name: &str,
        options: &TypeOptions<SqlOptions>,
        url: Option<&str>,
        folder: &Path,
    ) -> Result<Self, Vec<OptionMistake>> {
        let TypeOptions {
            calls, own: options, ..
        } = options;
        let mut mistakes = Vec::new();
        if options.url.is_none() {
            let text =
                "missing key `url`: the database, such as `{env: WAREHOUSE_URL}` or `sqlite:data/x.db`";
            mistakes.push(OptionMistake::new(&[], text));
        }
        if options.functions.is_empty() && !options.free_sql {
            let text = "missing key `functions`: statements by name, such as \
                        `{orders: {sql: \"select * from orders\"}}`, or `free_sql: true`";
            mistakes.push(OptionMistake::new(&[], text));
        }
        let target = url.and_then(|url| {
            let target = Target::new(url, options, folder);
            let target = target.map_err(|text| mistakes.push(OptionMistake::new(&["url"], text)));
            target.ok()
        });
        let password = target.as_ref().and_then(Target::password);
        if password.is_some_and(|password| password.len() < MIN_SECRET_BYTES) {
            let text = format!(
                "has a password shorter than {MIN_SECRET_BYTES} bytes, which could not be removed from \
                 answers; use a longer one"
            );
            mistakes.push(OptionMistake::new(&["url"], text));
        }
        let secrets: Vec<&str> = url
            .filter(|_| password.is_some())
            .into_iter()
            .chain(password)
            .collect();
        let redaction = Redaction::new(&secrets);
        let dialect = target.as_ref().map(Target::dialect);
        let mut functions = IndexMap::new();
        for (function, written) in &options.functions {
            if options.free_sql && function == FREE {
                let text = "is the name of the function of `free_sql`; rename it";
                mistakes.push(OptionMistake::new(&["functions", function], text));
            }
            match compiled(function, written, dialect) {
                Ok(compiled) => drop(functions.insert(function.clone(), compiled)),
                Err(wrong) => mistakes.extend(
                    wrong
                        .into_iter()
                        .map(|mistake| mistake.within(&["functions", function])),
                ),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self {
            name: name.to_owned(),
            calls: calls.clone(),
            target,
            limits: Limits {
                max_rows: options.max_rows,
                max_result: calls.max_result,
            },
            functions,
            free_sql: options.free_sql,
            descriptions: Descriptions::default(),
            redaction,
        })
    }

    fn target(&self) -> Result<&Target, ConnectorError> {
        self.target
            .as_ref()
            .ok_or_else(|| ConnectorError::provider("the URL of the database has not been read"))
    }

    /// Returns the statement of a call.
    fn rendered(
        &self,
        function: &str,
        arguments: &mut Map<String, Value>,
    ) -> Result<StatementText, ConnectorError> {
        let invalid = |text: String| ConnectorError::new(ConnectorErrorKind::InvalidParameter, text);
        if let Some(function) = self.functions.get(function) {
            return Ok(function.rendered.clone());
        }
        if !self.free_sql || function != FREE {
            return Err(invalid(format!("there is no function `{function}`")));
        }
        let Some(Value::String(text)) = arguments.remove(STATEMENT) else {
            return Err(invalid(format!("`{STATEMENT}` must be the text of a statement")));
        };
        let statement = Statement::new(&text, self.target()?.dialect());
        let statement = statement.map_err(|problem| invalid(format!("the statement {problem}")))?;
        let used = statement.parameters();
        if let Some(missing) = used.iter().find(|name| !arguments.contains_key(**name)) {
            return Err(invalid(format!(
                "the statement has the parameter `:{missing}`; pass its value as `{missing}=…`"
            )));
        }
        if let Some(unused) = arguments.keys().find(|name| !used.contains(&name.as_str())) {
            return Err(invalid(format!(
                "the statement has no parameter `:{unused}`; remove the argument or use it"
            )));
        }
        Ok(statement.rendered())
    }

    async fn call(
        &self,
        function: &str,
        mut arguments: Map<String, Value>,
        until: Instant,
    ) -> Result<FetchAnswer, ConnectorError> {
        let rendered = self.rendered(function, &mut arguments)?;
        let until = until.min(Instant::now() + self.calls.timeout);
        let limits = self.limits;
        let answered = async {
            match self.target()? {
                Target::Sqlite(path) => {
                    let read = move |database: sqlite::Sqlite| database.query(&rendered, &arguments, limits);
                    sqlite::blocking(path, limits, until, read).await
                }
                Target::Postgres(server) => {
                    postgres::query(server, &rendered, &arguments, limits, until).await
                }
                Target::Mysql(server) => mysql::query(server, &rendered, &arguments, limits, until).await,
            }
        };
        self.within(until, answered).await
    }

    async fn within<T>(
        &self,
        until: Instant,
        work: impl Future<Output = Result<T, ConnectorError>>,
    ) -> Result<T, ConnectorError> {
        let worked = tokio::time::timeout_at(until.into(), work).await;
        let worked = worked.unwrap_or_else(|_| {
            let text = format!(
                "the database did not answer within {}, the limit `timeout`, or within the cell; select less",
                Time(self.calls.timeout)
            );
            Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
        });
        worked.map_err(|error| ConnectorError::new(error.kind(), self.redaction.text(&error.to_string())))
    }
}

/// Compiles a function. Databases differ in what a quote is, so that its statement is read only for
/// a known one.
fn compiled(
    name: &str,
    options: &SqlFunction,
    dialect: Option<Dialect>,
) -> Result<Function, Vec<OptionMistake>> {
    let mut mistakes: Vec<_> = card::mistakes(&options.parameters).collect();
    let mut rendered = StatementText::default();
    match (&options.sql, dialect) {
        (None, _) => {
            let text = "missing key `sql`, the statement, such as `select * from orders where day >= :since`";
            mistakes.push(OptionMistake::new(&[], text));
        }
        (Some(text), Some(dialect)) => match Statement::new(text, dialect) {
            Ok(statement) => {
                mistakes.extend(unmatched(&statement, options));
                rendered = statement.rendered();
            }
            Err(problem) => mistakes.push(OptionMistake::new(&["sql"], problem)),
        },
        (Some(_), None) => {}
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok(Function {
        card: card::card(
            name,
            &options.description,
            &options.parameters,
            FetchEffect::Reads,
        ),
        rendered,
    })
}

/// Returns the parameters that are only in the statement, or only declared.
fn unmatched(statement: &Statement, options: &SqlFunction) -> Vec<OptionMistake> {
    let used = statement.parameters();
    let undeclared = used
        .iter()
        .filter(|name| !options.parameters.contains_key(**name));
    let undeclared = undeclared
        .map(|name| OptionMistake::new(&["sql"], format!("has `:{name}`, which is not in `parameters`")));
    let unused = options
        .parameters
        .keys()
        .filter(|name| !used.contains(&name.as_str()));
    let unused = unused.map(|name| {
        OptionMistake::new(
            &["parameters", name],
            "is not in `sql`; use it there, or remove it",
        )
    });
    undeclared.chain(unused).collect()
}

impl Connector for SqlConnector {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.calls.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        self.described().map(Ok).boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let function = function.to_owned();
        async move {
            let answer = self.call(&function, arguments, until).await;
            answer.map_err(|error| error.of_call(&self.name, &function))
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        async {
            let until = Instant::now() + self.calls.timeout;
            let checked = self.within(until, async {
                match self.target()? {
                    Target::Sqlite(path) => {
                        sqlite::blocking(path, self.limits, until, |database: sqlite::Sqlite| {
                            database.check()
                        })
                        .await
                    }
                    Target::Postgres(server) => postgres::check(server, until).await,
                    Target::Mysql(server) => mysql::check(server, until).await,
                }
            });
            // The operator checks; errors of calls do not say where the database is, because that
            // is not for the sandbox.
            checked.await.map_err(|error| match self.target() {
                Ok(target) => ConnectorError::new(error.kind(), format!("{target}: {error}")),
                Err(_) => error,
            })
        }
        .boxed()
    }

    fn memo(&self) -> MemoPolicy {
        self.calls.memo
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Describes the function of `free_sql`.
fn free_card(dialect: Option<Dialect>, tables: &str) -> Card {
    let (name, lists) = match dialect {
        Some(Dialect::Postgres) => ("Postgres", "A list is an array, as in `= any(:ids)`."),
        Some(Dialect::Mysql) => (
            "MySQL",
            "A list is JSON text, for `json_table` or `json_contains`.",
        ),
        Some(Dialect::Sqlite) => (
            "SQLite",
            "A list is JSON text, as in `in (select value from json_each(:ids))`.",
        ),
        None => ("SQL", ""),
    };
    Card {
        name: FREE.to_owned(),
        description: format!(
            "Runs one {name} statement that reads, and returns its rows. Pass values as arguments, such \
             as `sql(\"select … where day >= :since\", since=\"2026-01-01\")`, and do not write them into \
             the statement. {lists}{tables}"
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                (STATEMENT): {
                    "description": "One statement that reads, with parameters as `:name`.",
                    "type": "string",
                    "minLength": 1,
                },
            },
            "required": [STATEMENT],
            "additionalProperties": true,
        }),
        effect: FetchEffect::Reads,
        ..Card::default()
    }
}
