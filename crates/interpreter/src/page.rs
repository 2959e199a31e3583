//! Pages of long values: of the rows that are stored of a table, and of texts.

use std::fs::File;

use arrow_array::RecordBatchReader;
use cellblock_artifact::{ArtifactId, Kind, Metadata, Store};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::conversion::ConversionPlace;
use crate::error::{Error, Result};
use crate::output::{
    Dataframe, Output, OutputError, OutputPage, Primitive, Rich, RowOrder, RowsFormat, Scalar, TablePage,
    TextPage, table_batches, table_rows, table_slice,
};

/// Number of rows of a page by default.
const ROWS: u32 = 10;
/// Maximum number of rows of a page.
const MAX_ROWS: u32 = 1000;
/// Number of rows of a slice by default.
const LIMIT: u32 = 1000;
/// Maximum number of rows of a slice.
const MAX_LIMIT: u32 = 10_000;
/// Number of characters of a page by default.
const CHARS: u32 = 1000;
/// Maximum number of characters of a page.
const MAX_CHARS: u32 = 100_000;

/// Selects a page of a table or a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PageSelection {
    /// Number of rows of a page of a table, 1 to 1000; 10 by default.
    pub rows: Option<u32>,
    /// Number of characters of a page of a text, 1 to 100,000; 1000 by default.
    pub chars: Option<u32>,
    /// Number of the page from 0; a negative number counts from the end, -1 is the last page.
    pub page: Option<i64>,
}

impl PageSelection {
    /// Whether a page is requested at all.
    pub fn is_some(self) -> bool {
        self != Self::default()
    }

    /// Reads the page. Of a value that is not stored completely, pages are counted in what is stored.
    pub async fn of(self, output: &Output, store: &Store) -> Result<OutputPage> {
        match output {
            Output::Dataframe(table) if self.chars.is_none() => {
                self.rows(table, store).await.map(OutputPage::Rows)
            }
            Output::Primitive(Primitive {
                value: Scalar::Text(text),
                ..
            })
            | Output::Rich(Rich { text, .. })
                if self.rows.is_none() =>
            {
                self.text(text).map(OutputPage::Text)
            }
            _ => {
                let reason = "`rows` with `page` selects a page of a table, `chars` with `page` one of a \
                              text, and this value is something else; leave them out";
                Err(wrong("page", reason.to_owned()))
            }
        }
    }

    async fn rows(self, table: &Dataframe, store: &Store) -> Result<TablePage> {
        let rows = within("rows", self.rows, ROWS, MAX_ROWS)?;
        let pages = table.rows_stored.div_ceil(rows.into());
        let page = self.number(pages, rows, "rows")?;
        let first_row = page * u64::from(rows);
        let read = match &table.table {
            _ if pages == 0 => Vec::new(),
            Some(artifact) => {
                let place = ConversionPlace::take().await?;
                stored(store, artifact.sha256, move |file| {
                    let _place = place;
                    table_rows(file, first_row, rows)
                })
                .await?
            }
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

    fn text(self, text: &str) -> Result<TextPage> {
        let size = within("chars", self.chars, CHARS, MAX_CHARS)?;
        let chars = text.chars().count() as u64;
        let pages = chars.div_ceil(size.into());
        let page = self.number(pages, size, "characters")?;
        let first_char = page * u64::from(size);
        // It is at most the number of characters, which fits.
        let skipped = usize::try_from(first_char).unwrap_or(usize::MAX);
        Ok(TextPage {
            page,
            pages,
            first_char,
            chars,
            text: text.chars().skip(skipped).take(size as usize).collect(),
        })
    }

    /// Returns the page's number from the start. An empty value has one page, without anything.
    fn number(self, pages: u64, size: u32, of: &str) -> Result<u64> {
        let reachable = pages.max(1);
        let wanted = self.page.unwrap_or(0);
        let page = if wanted < 0 {
            reachable.checked_sub(wanted.unsigned_abs())
        } else {
            Some(wanted.unsigned_abs())
        };
        page.filter(|page| *page < reachable).ok_or_else(|| {
            let reason = format!(
                "it is {wanted}, but there are {pages} pages of {size} {of}; the first is 0, the last -1"
            );
            wrong("page", reason)
        })
    }
}

/// Selects rows of a stored table, to be read as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SliceSelection {
    /// Index of the first row, from 0.
    #[serde(default)]
    pub offset: u64,
    /// Number of rows, 1 to 10,000; 1000 by default.
    pub limit: Option<u32>,
    /// The format of the rows.
    #[serde(default)]
    pub format: RowsFormat,
    /// Index from 0 of the column by which all rows are sorted before they are counted. Rows with
    /// equal values keep their order, those without a value are last.
    pub sort: Option<u32>,
    /// Whether the largest value is first.
    #[serde(default)]
    pub descending: bool,
}

impl SliceSelection {
    /// Writes the rows of a table that is an output into a file without a name. Beyond the last row
    /// there are none.
    pub async fn of(self, table: &Metadata, store: &Store) -> Result<File> {
        // Files of a sandbox are never parsed here, whatever they say that they are.
        if table.kind != Kind::Dataframe {
            let reason = "the artifact is not a table that was displayed; read its bytes".to_owned();
            return Err(wrong("sha256", reason));
        }
        let rows = within("limit", self.limit, LIMIT, MAX_LIMIT)?;
        let order = self.sort.map(|column| RowOrder {
            column,
            descending: self.descending,
        });
        let id = table.sha256;
        let read = move |file| table_slice(id, file, order, self.offset, rows, self.format);
        let read = stored(store, id, read).await;
        let written = read.map_err(|error| match error {
            Error::Output(OutputError::Order { reason }) => wrong("sort", reason),
            other => other,
        })?;
        written.ok_or_else(|| {
            wrong(
                "limit",
                format!("{rows} of its rows are too many bytes; request fewer"),
            )
        })
    }
}

fn within(name: &'static str, given: Option<u32>, usual: u32, most: u32) -> Result<u32> {
    let size = given.unwrap_or(usual);
    if (1..=most).contains(&size) {
        return Ok(size);
    }
    Err(wrong(name, format!("it is {size}; give 1 to {most}")))
}

fn wrong(name: &'static str, reason: String) -> Error {
    Error::Argument {
        name,
        missing: false,
        reason,
    }
}

impl Dataframe {
    /// Opens the stored rows as Arrow batches. The stored bytes are checked first.
    pub async fn open(&self, store: &Store) -> Result<impl RecordBatchReader + use<>> {
        let Some(artifact) = &self.table else {
            return Err(wrong(
                "table",
                "it could not be stored; see its `note`".to_owned(),
            ));
        };
        open(store, artifact.sha256).await
    }
}

/// Opens a table that the host has stored, after its bytes are checked.
pub(crate) async fn open(store: &Store, id: ArtifactId) -> Result<impl RecordBatchReader + use<>> {
    let file = store.verified_file(id).await?;
    apart(file, table_batches).await
}

/// Reads a stored table.
async fn stored<T: Send + 'static>(
    store: &Store,
    id: ArtifactId,
    read: impl FnOnce(File) -> Result<T, OutputError> + Send + 'static,
) -> Result<T> {
    let file = store.file(id).await?;
    apart(file, read).await
}

/// Returns the size in bytes of the orders of tables that are in memory: the next page of a sorted
/// table is not sorted again.
pub fn order_bytes() -> usize {
    crate::output::table::order_cache::bytes()
}

/// Reads a file in a thread for such work.
async fn apart<T: Send + 'static>(
    file: File,
    read: impl FnOnce(File) -> Result<T, OutputError> + Send + 'static,
) -> Result<T> {
    let read = spawn_blocking(move || read(file)).await;
    Ok(read.expect("reading rows does not panic")?)
}
