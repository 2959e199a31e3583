//! A call: finds the files of a table, and writes the rows that it wants to an Arrow stream as they are read.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use glob::Pattern;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::condition::Condition;
use super::format::{Format, Part};
use super::partition::Partitions;
use super::root::{FileMatch, Root};
use super::table_file::TableFile;
use super::types::{difference, named};
use crate::table_writer::{TableWriter, unwritten};

/// Hint for getting a smaller answer.
const LESS: &str = "choose fewer columns or rows with `columns`, `where` and `limit`";

/// A table: the files that match a pattern.
#[derive(Debug)]
pub(super) struct FileTable {
    pub(super) pattern: Pattern,
    pub(super) format: Format,
    pub(super) declared: IndexMap<String, DataType>,
}

/// The files of a table and its columns.
struct TableSource {
    found: Vec<FileMatch>,
    /// The first file, and its own columns, until it is read.
    first: Option<(TableFile, Schema)>,
    partitions: Partitions,
    /// Columns that are in the files.
    stored: Schema,
    /// All columns.
    schema: Schema,
}

fn failed(kind: ConnectorErrorKind, text: impl Into<String>) -> ConnectorError {
    ConnectorError::new(kind, text.into())
}

impl FileTable {
    /// Returns the columns, read from the first file.
    pub(super) fn schema(&self, root: &Root) -> Result<Schema, ConnectorError> {
        Ok(self.open(root)?.schema)
    }

    fn open(&self, root: &Root) -> Result<TableSource, ConnectorError> {
        let pattern = self.pattern.as_str();
        let found = root.files(&self.pattern)?;
        let Some(first) = found.first() else {
            let text = format!("no file below `root` matches `{pattern}`; symbolic links are not followed");
            return Err(failed(ConnectorErrorKind::EmptyData, text));
        };
        let partitions = Partitions::new(&found).map_err(|text| failed(ConnectorErrorKind::Parse, text))?;
        let file = root.file(first)?;
        let own = self
            .format
            .schema(&file, &self.declared)
            .map_err(|error| root.broken(first, error))?;
        let stored = partitions.without(&own);
        let fields = stored.fields().iter().map(|field| field.as_ref().clone());
        let schema = Schema::new(fields.chain(partitions.fields.clone()).collect::<Vec<_>>());
        Ok(TableSource {
            found,
            first: Some((file, own)),
            partitions,
            stored,
            schema,
        })
    }

    /// Answers a call.
    pub(super) fn read(
        &self,
        root: &Root,
        arguments: &Map<String, Value>,
        max_result: u64,
    ) -> Result<FetchAnswer, ConnectorError> {
        let mut opened = self.open(root)?;
        let invalid = |text: String| failed(ConnectorErrorKind::InvalidParameter, text);
        let columns: Vec<Field> = match arguments.get("columns").and_then(Value::as_array) {
            None => opened
                .schema
                .fields()
                .iter()
                .map(|field| field.as_ref().clone())
                .collect(),
            Some(names) => names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| named(&opened.schema, name).cloned())
                .collect::<Result<_, _>>()
                .map_err(invalid)?,
        };
        let written = arguments.get("where").and_then(Value::as_object);
        let conditions = written.map_or(Ok(Vec::new()), |written| Condition::all(written, &opened.schema));
        let conditions = conditions.map_err(invalid)?;
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let mut left = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (of_folders, of_files): (Vec<_>, Vec<_>) = conditions
            .into_iter()
            .partition(|condition| opened.stored.field_with_name(&condition.column).is_err());
        let mut answer = TableWriter::new(Schema::new(columns), max_result, LESS)?;
        for place in 0..opened.found.len() {
            if left == Some(0) {
                break;
            }
            root.check_end()?;
            let wanted = of_folders.iter().map(|condition| {
                let value = opened.partitions.column(place, &condition.column, 1);
                value.map_or(Ok(true), |value| Ok(condition.holds(&value)?.value(0)))
            });
            let wanted: Result<Vec<bool>, ArrowError> = wanted.collect();
            if wanted
                .map_err(|error| root.broken(&opened.found[place], error))?
                .contains(&false)
            {
                continue;
            }
            let (file, own) = self.checked(root, &mut opened, place)?;
            let path = &opened.found[place];
            let columns = answer.schema().fields().iter().map(|field| field.name().clone());
            let part = Part {
                schema: &own,
                columns: columns
                    .filter(|name| opened.stored.field_with_name(name).is_ok())
                    .collect(),
                conditions: of_files.clone(),
            };
            let batches = self
                .format
                .batches(&file, part, left)
                .map_err(|error| root.broken(path, error))?;
            for batch in batches {
                root.check_end()?;
                let mut batch = batch.map_err(|error| root.broken(path, self.explained(&error)))?;
                if let Some(left) = &mut left {
                    batch = batch.slice(0, batch.num_rows().min(*left));
                    *left -= batch.num_rows();
                }
                add(&mut answer, &batch, |name, rows| {
                    opened.partitions.column(place, name, rows)
                })?;
                if left == Some(0) {
                    break;
                }
            }
        }
        answer.finish()
    }

    /// Opens a file, and returns it with its columns, which must be those of the first.
    fn checked(
        &self,
        root: &Root,
        opened: &mut TableSource,
        place: usize,
    ) -> Result<(TableFile, Schema), ConnectorError> {
        let found = &opened.found[place];
        let (file, own) = if let Some(first) = opened.first.take().filter(|_| place == 0) {
            first
        } else {
            let file = root.file(found)?;
            let own = self.format.own_schema(&file, &opened.schema);
            (file, own.map_err(|error| root.broken(found, error))?)
        };
        match difference(&opened.stored, &opened.partitions.without(&own)) {
            Some(difference) => {
                let (first, path) = (&opened.found[0].path, &found.path);
                let text = format!("`{first}` and `{path}` have different columns: {difference}");
                Err(failed(ConnectorErrorKind::Parse, text))
            }
            // The columns of CSV are in the order of the file.
            None if self.format == Format::JsonLines => Ok((file, opened.stored.clone())),
            None => Ok((file, own)),
        }
    }

    fn explained(&self, error: &ArrowError) -> String {
        match self.format {
            Format::Parquet => error.to_string(),
            Format::Csv | Format::JsonLines => format!(
                "{error}; types and columns come from the first rows of the first file, unless the \
                 operator declares them in `columns`"
            ),
        }
    }
}

/// Adds rows of a file to an answer; `folder` makes the columns that its folders name.
fn add(
    answer: &mut TableWriter,
    batch: &RecordBatch,
    folder: impl Fn(&str, usize) -> Option<ArrayRef>,
) -> Result<(), ConnectorError> {
    if batch.num_rows() == 0 {
        return Ok(());
    }
    let schema = Arc::clone(answer.schema());
    let columns = schema.fields().iter().map(|field| {
        let values =
            folder(field.name(), batch.num_rows()).or_else(|| batch.column_by_name(field.name()).cloned());
        let values =
            values.ok_or_else(|| ArrowError::SchemaError(format!("no column `{}`", field.name())))?;
        cast(&values, field.data_type())
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let batch = columns
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options))
        .map_err(|error| unwritten(&error))?;
    answer.write(&batch)
}
