//! Pages of the rows that are stored of a table.

use std::fs::File;

use cellblock_artifact::{ArtifactId, Store};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::output::{Dataframe, TablePage, table_rows};

/// Number of rows of a page by default.
const ROWS: u32 = 10;
/// Maximum number of rows of a page.
const MAX_ROWS: u32 = 1000;

/// Selects a page of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PageSelection {
    /// Number of rows of a page, 1 to 1000; 10 by default.
    pub rows: Option<u32>,
    /// Number of the page from 0; a negative number counts from the end, -1 is the last page.
    pub page: Option<i64>,
}

impl PageSelection {
    /// Whether a page is requested at all.
    pub fn is_some(self) -> bool {
        self.rows.is_some() || self.page.is_some()
    }

    /// Reads the page. Of a table that is not stored completely, rows are counted among the stored ones.
    pub async fn of(self, table: &Dataframe, store: &Store) -> Result<TablePage> {
        let rows = self.rows.unwrap_or(ROWS);
        if !(1..=MAX_ROWS).contains(&rows) {
            return Err(wrong("rows", format!("it is {rows}; give 1 to {MAX_ROWS}")));
        }
        let pages = table.rows_stored.div_ceil(rows.into());
        // An empty table has one page, without rows.
        let reachable = pages.max(1);
        let asked = self.page.unwrap_or(0);
        let page = if asked < 0 {
            reachable.checked_sub(asked.unsigned_abs())
        } else {
            Some(asked.unsigned_abs())
        };
        let page = page.filter(|page| *page < reachable);
        let page = page.ok_or_else(|| {
            let reason = format!(
                "it is {asked}, but there are {pages} pages of {rows} rows; the first is 0, the last -1"
            );
            wrong("page", reason)
        })?;
        let first_row = page * u64::from(rows);
        let read = match &table.table {
            _ if pages == 0 => Vec::new(),
            Some(artifact) => read(store, artifact.sha256, first_row, rows).await?,
            None => {
                return Err(wrong(
                    "page",
                    "the table could not be stored; see its `note`".to_owned(),
                ));
            }
        };
        Ok(TablePage {
            page,
            pages,
            first_row,
            rows: read,
        })
    }
}

fn wrong(name: &'static str, reason: String) -> Error {
    Error::Argument {
        name,
        missing: false,
        reason,
    }
}

async fn read(store: &Store, id: ArtifactId, first_row: u64, rows: u32) -> Result<Vec<Vec<Value>>> {
    let read = if let Some(path) = store.local_path(id) {
        spawn_blocking(move || table_rows(File::open(path)?, first_row, rows))
    } else {
        let bytes = store.get(id).await?;
        spawn_blocking(move || table_rows(bytes, first_row, rows))
    };
    Ok(read.await.expect("reading rows does not panic")?)
}
