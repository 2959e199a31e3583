//! Tables in files of a folder or an object store: patterns below its root, and reading of only
//! what a call wants.
//!
//! ```text
//! Table ──pattern──> Root ──> Folder: openat2 │ Objects: listing, ranges
//!   │ format                    └── TableFile: disk │ Object, in windows
//!   └──> batches of the columns, row groups and rows that are wanted
//! ```

mod condition;
mod end;
mod folder;
mod format;
mod object;
mod objects;
mod options;
mod parquet;
mod partition;
mod read;
mod root;
mod search;
mod table_file;
mod types;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, MemoPolicy, Redaction,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use glob::Pattern;
use indexmap::IndexMap;
use object_store::ObjectStore;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::columns::listed;
use crate::options::{CallOptions, TypeOptions};
use crate::recipe::OptionMistake;
use end::CallEnd;
use format::Format;
pub use options::FilesOptions;
use read::FileTable;
use root::{FileRoot, Root};

/// A connector of the type `files`.
#[derive(Debug)]
pub struct FilesConnector {
    name: String,
    calls: CallOptions,
    root: Arc<FileRoot>,
    tables: IndexMap<String, Arc<FileTable>>,
    redaction: Redaction,
}

impl FilesConnector {
    /// Compiles a connector whose folder is `root`, unless its options name an object store. Opens nothing.
    pub fn new(
        name: &str,
        options: &TypeOptions<FilesOptions>,
        root: PathBuf,
    ) -> Result<Self, Vec<OptionMistake>> {
        let TypeOptions {
            calls, own: options, ..
        } = options;
        let mut mistakes = Vec::new();
        let mut place = FileRoot::Folder(root);
        match options.root.as_ref().and_then(|root| root.to_str()) {
            None => mistakes.push(OptionMistake::new(
                &[],
                "missing key `root`: the folder of the files, such as `data/`, or `s3://bucket/prefix/`",
            )),
            Some(root) if root.starts_with("s3://") => {
                if let Err(error) = cellblock_artifact::check_objects(root) {
                    mistakes.push(OptionMistake::new(&["root"], error.to_string()));
                }
                place = FileRoot::Objects(root.to_owned(), OnceLock::new());
            }
            Some(root) if root.contains("://") => {
                let text = format!(
                    "`{root}` is neither a folder nor `s3://bucket/prefix/`; mount or copy the files"
                );
                mistakes.push(OptionMistake::new(&["root"], text));
            }
            Some(_) => {}
        }
        if options.tables.is_empty() {
            let text = "missing key `tables`: patterns of files by name, such as \
                        `{trips: \"trips/year=*/*.parquet\"}`";
            mistakes.push(OptionMistake::new(&[], text));
        }
        for table in options
            .columns
            .keys()
            .filter(|table| !options.tables.contains_key(*table))
        {
            mistakes.push(OptionMistake::new(
                &["columns", table],
                "is not the name of a table in `tables`",
            ));
        }
        let mut tables = IndexMap::new();
        for (table, pattern) in &options.tables {
            match compiled(table, pattern, options) {
                Ok(compiled) => drop(tables.insert(table.clone(), Arc::new(compiled))),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self {
            name: name.to_owned(),
            calls: calls.clone(),
            root: Arc::new(place),
            tables,
            redaction: Redaction::default(),
        })
    }

    /// Reads from this object store instead of the one that the environment of the process describes.
    #[must_use]
    pub fn over(mut self, store: Arc<dyn ObjectStore>) -> Self {
        self.root = Arc::new(FileRoot::Objects(String::new(), OnceLock::from(store)));
        self
    }

    /// Runs work on files outside the threads of the runtime. Dropping the future ends it.
    async fn blocking<T: Send + 'static>(
        &self,
        until: Option<Instant>,
        work: impl FnOnce(&Root) -> Result<T, ConnectorError> + Send + 'static,
    ) -> Result<T, ConnectorError> {
        let stopped = CancellationToken::new();
        let _stop = stopped.clone().drop_guard();
        let limit = Instant::now() + self.calls.timeout;
        let until = until.map_or(limit, |until| until.min(limit));
        let (place, timeout) = (Arc::clone(&self.root), self.calls.timeout);
        let worked =
            tokio::task::spawn_blocking(move || work(&place.open(timeout, CallEnd { stopped, until })?));
        worked
            .await
            .unwrap_or_else(|error| Err(ConnectorError::provider(format!("reading failed: {error}"))))
    }
}

fn compiled(name: &str, pattern: &str, options: &FilesOptions) -> Result<FileTable, OptionMistake> {
    let wrong = |text: String| OptionMistake::new(&["tables", name], text);
    if pattern.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(wrong(
            "must be a path below `root`, without a leading `/`, `.` and `..`".to_owned(),
        ));
    }
    let format = Format::of(pattern)
        .ok_or_else(|| wrong("must end with `.parquet`, `.csv`, `.jsonl` or `.ndjson`".to_owned()))?;
    let pattern = Pattern::new(pattern).map_err(|error| wrong(format!("is not a pattern: {error}")))?;
    let mut declared = IndexMap::new();
    for (column, kind) in options.columns.get(name).into_iter().flatten() {
        let wrong = |text| OptionMistake::new(&["columns", name, column], text);
        if format == Format::Parquet {
            return Err(wrong(
                "is a column of Parquet files, which have their types; remove it",
            ));
        }
        let kind = types::declared(*kind)
            .ok_or_else(|| wrong("`json` is not a type of columns of files; use another"))?;
        declared.insert(column.clone(), kind);
    }
    Ok(FileTable {
        pattern,
        format,
        declared,
    })
}

impl Connector for FilesConnector {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.calls.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let tables = self.tables.clone();
        async move {
            // Columns are read from the first file of each table. Without them, functions can still
            // be called.
            let names: Vec<String> = tables.keys().cloned().collect();
            let read = self.blocking(None, move |root| {
                Ok(tables
                    .values()
                    .map(|table| table.schema(root).ok())
                    .collect::<Vec<_>>())
            });
            let schemas = read
                .await
                .unwrap_or_default()
                .into_iter()
                .chain(std::iter::repeat(None));
            let cards = names.iter().zip(schemas).map(|(name, schema)| {
                let columns = schema.map(|schema| format!(" Columns: {}.", listed(&schema)));
                card(name, &columns.unwrap_or_default())
            });
            Ok(cards.collect())
        }
        .boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let function = function.to_owned();
        let table = self.tables.get(&function).cloned();
        async move {
            let Some(table) = table else {
                let error =
                    ConnectorError::new(ConnectorErrorKind::InvalidParameter, "there is no such table");
                return Err(error.of_call(&self.name, &function));
            };
            let max_result = self.calls.max_result;
            let answer = self
                .blocking(Some(until), move |root| table.read(root, &arguments, max_result))
                .await;
            answer.map_err(|error| error.of_call(&self.name, &function))
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        self.blocking(None, Root::check).boxed()
    }

    fn memo(&self) -> MemoPolicy {
        self.calls.memo
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Describes a table for code.
fn card(name: &str, columns: &str) -> Card {
    Card {
        name: name.to_owned(),
        description: format!("Rows of the table `{name}`.{columns}"),
        parameters: json!({
            "type": "object",
            "properties": {
                "columns": {
                    "description": "Columns to read; by default, all.",
                    "type": ["array", "null"],
                    "items": {"type": "string"},
                    "minItems": 1,
                    "uniqueItems": true,
                    "default": null,
                },
                "where": {
                    "description": "Conditions by column, which all hold: a value, a list of values, \
                                    null, or comparisons such as {\">=\": 10, \"<\": 20}.",
                    "type": ["object", "null"],
                    "default": null,
                },
                "limit": {
                    "description": "Maximum number of rows.",
                    "type": ["integer", "null"],
                    "minimum": 1,
                    "default": null,
                },
            },
            "required": [],
            "additionalProperties": false,
        }),
        effect: FetchEffect::Reads,
        ..Card::default()
    }
}
