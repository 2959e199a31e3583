//! Descriptions of the results of a database's functions, read from it now and then.

use std::time::{Duration, Instant};

use arrow_schema::Schema;
use cellblock_interpreter::connector::{Card, ConnectorError};
use tokio::sync::Mutex;

use super::statement::StatementText;
use super::tables::{self, TableColumn};
use super::target::Target;
use super::{SqlConnector, free_card, mysql, postgres, sqlite};
use crate::columns::listed;

/// Maximum age of a description. Each session asks for one.
const AGE: Duration = Duration::from_mins(1);
/// Maximum time for which a session waits for one; without it, functions can still be called.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last descriptions.
#[derive(Debug, Default)]
pub(super) struct Descriptions(Mutex<Option<(Instant, Vec<Card>)>>);

/// Description that a database gives of itself.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// Columns of statements, where these are known without running them.
    pub(super) statements: Vec<Option<Schema>>,
    pub(super) tables: Vec<TableColumn>,
}

impl SqlConnector {
    /// Returns the functions.
    pub(super) async fn described(&self) -> Vec<Card> {
        let mut last = self.descriptions.0.lock().await;
        if let Some((at, cards)) = &*last
            && at.elapsed() < AGE
        {
            return cards.clone();
        }
        let until = Instant::now() + PATIENCE;
        let described = self.within(until, self.ask(until)).await;
        let described = described.unwrap_or_else(|error| {
            tracing::warn!(connector = self.name, %error, "the database does not describe itself");
            Description::default()
        });
        let schemas = described.statements.into_iter().chain(std::iter::repeat(None));
        let mut cards = Vec::new();
        for (function, schema) in self.functions.values().zip(schemas) {
            let mut card = function.card.clone();
            if let Some(schema) = schema {
                let columns = format!("{} Columns: {}.", card.description, listed(&schema));
                columns.trim_start().clone_into(&mut card.description);
            }
            cards.push(card);
        }
        if self.free_sql {
            let tables = match tables::listed(&described.tables) {
                tables if tables.is_empty() => tables,
                tables => format!("\nTables:{tables}"),
            };
            cards.push(free_card(self.target.as_ref().map(Target::dialect), &tables));
        }
        *last = Some((Instant::now(), cards.clone()));
        cards
    }

    async fn ask(&self, until: Instant) -> Result<Description, ConnectorError> {
        let statements: Vec<StatementText> = self.functions.values().map(|it| it.rendered.clone()).collect();
        let most = if self.free_sql { tables::MOST_COLUMNS } else { 0 };
        match self.target()? {
            Target::Sqlite(path) => {
                let ask = move |mut database: sqlite::Sqlite| {
                    Ok(Description {
                        tables: database.tables(most)?,
                        statements: database.described(&statements)?,
                    })
                };
                sqlite::blocking(path, self.limits, until, ask).await
            }
            Target::Postgres(server) => postgres::describe(server, &statements, most, until).await,
            Target::Mysql(server) => mysql::describe(server, &statements, most, until).await,
        }
    }
}
