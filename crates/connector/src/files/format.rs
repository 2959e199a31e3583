//! Formats of files: their columns, and their rows as batches.

use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::filter::filter_record_batch;
use cellblock_interpreter::separator::TextLayout;
use indexmap::IndexMap;

use super::condition::Condition;
use super::parquet;
use super::table_file::TableFile;
use super::types::plain;

/// Rows of a batch.
pub(super) const BATCH: usize = 8192;
/// Rows from which types are inferred.
const INFERRED: usize = 10_000;
/// Bytes that tell the separator of a text.
const HEAD: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Parquet,
    Csv,
    JsonLines,
}

/// Part of a file that is read.
pub(super) struct Part<'a> {
    /// Columns of the file, with the types of the table.
    pub(super) schema: &'a Schema,
    /// Columns of the answer that are in the file.
    pub(super) columns: Vec<String>,
    /// Conditions on its columns.
    pub(super) conditions: Vec<Condition>,
}

pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;
type ColumnTypes = IndexMap<String, DataType>;

impl Format {
    pub(super) fn of(pattern: &str) -> Option<Self> {
        match pattern.rsplit_once('.')?.1 {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }

    /// Returns the columns of a file. Types of text formats are declared, or inferred from the first rows.
    pub(super) fn schema(self, file: &TableFile, declared: &ColumnTypes) -> Result<Schema, String> {
        let inferred = match self {
            Self::Parquet => return Ok(plain(parquet::schema(file)?.as_ref())),
            Self::Csv => {
                let (separator, text) = csv(file).map_err(|error| error.to_string())?;
                let format = arrow_csv::reader::Format::default();
                let format = format.with_header(true).with_delimiter(separator);
                format
                    .infer_schema(text, Some(INFERRED))
                    .map(|(schema, _)| schema)
            }
            Self::JsonLines => text(file)
                .map_err(ArrowError::from)
                .and_then(|file| arrow_json::reader::infer_json_schema(file, Some(INFERRED)))
                .map(|(schema, _)| schema),
        };
        let schema = plain(&inferred.map_err(|error| error.to_string())?);
        if let Some(column) = declared
            .keys()
            .find(|column| schema.field_with_name(column).is_err())
        {
            // A field that the first lines leave out may follow.
            if self == Self::Csv {
                return Err(format!(
                    "it has no column `{column}`, which `columns` of the configuration declares"
                ));
            }
        }
        let mut fields: IndexMap<_, _> = schema
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect();
        fields.extend(declared.clone());
        let fields = fields.into_iter();
        let fields = fields.map(|(name, kind)| arrow_schema::Field::new(name, kind, true));
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Returns the columns of another file of a table. Text formats have the types of the first file.
    pub(super) fn own_schema(self, file: &TableFile, table: &Schema) -> Result<Schema, String> {
        match self {
            Self::Parquet => Ok(plain(parquet::schema(file)?.as_ref())),
            Self::Csv => {
                let (separator, text) = csv(file).map_err(|error| error.to_string())?;
                let format = arrow_csv::reader::Format::default();
                let format = format.with_header(true).with_delimiter(separator);
                let (names, _) = format
                    .infer_schema(text, Some(1))
                    .map_err(|error| error.to_string())?;
                let fields = names.fields().iter().map(|field| {
                    let known = table.field_with_name(field.name()).cloned();
                    known.unwrap_or_else(|_| field.as_ref().clone())
                });
                Ok(Schema::new(fields.collect::<Vec<_>>()))
            }
            Self::JsonLines => Ok(table.clone()),
        }
    }

    /// Reads the rows that meet the conditions, at most so many.
    pub(super) fn batches(
        self,
        file: &TableFile,
        part: Part<'_>,
        limit: Option<usize>,
    ) -> Result<Batches, String> {
        let failed = |error: ArrowError| error.to_string();
        match self {
            Self::Parquet => parquet::batches(file, part, limit),
            Self::Csv => {
                let wanted = |name: &String| {
                    part.columns.contains(name) || part.conditions.iter().any(|it| it.column == *name)
                };
                let fields = part.schema.fields().iter().enumerate();
                let places = fields
                    .filter(|(_, field)| wanted(field.name()))
                    .map(|(place, _)| place);
                let (separator, text) = csv(file).map_err(|error| error.to_string())?;
                let reader = arrow_csv::ReaderBuilder::new(Arc::new(part.schema.clone()))
                    .with_header(true)
                    .with_delimiter(separator)
                    .with_batch_size(BATCH)
                    .with_projection(places.collect())
                    .build_buffered(text);
                Ok(filtered(reader.map_err(failed)?, part.conditions))
            }
            Self::JsonLines => {
                // Without projection, so that a field that no line had before is an error.
                let reader = arrow_json::ReaderBuilder::new(Arc::new(part.schema.clone()))
                    .with_batch_size(BATCH)
                    .with_strict_mode(true)
                    .build(text(file).map_err(|error| error.to_string())?);
                Ok(filtered(reader.map_err(failed)?, part.conditions))
            }
        }
    }
}

/// Reads separated text from its header, and finds its separator.
fn csv(file: &TableFile) -> std::io::Result<(u8, Box<dyn BufRead>)> {
    let mut reader = text(file)?;
    let mut head = Vec::new();
    std::io::Read::by_ref(&mut reader)
        .take(HEAD)
        .read_to_end(&mut head)?;
    let layout = TextLayout::of(&head);
    head.drain(..layout.skipped);
    let rest = BufReader::new(Cursor::new(head).chain(reader));
    Ok((layout.separator, Box::new(rest)))
}

/// Reads text, after the byte order mark that some programs write.
fn text(file: &TableFile) -> std::io::Result<Box<dyn BufRead>> {
    let mut reader = file.reader(0);
    let mut start = Vec::new();
    std::io::Read::by_ref(&mut reader)
        .take(3)
        .read_to_end(&mut start)?;
    if start == *"\u{feff}".as_bytes() {
        start.clear();
    }
    Ok(Box::new(BufReader::new(Cursor::new(start).chain(reader))))
}

fn filtered(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'static,
    conditions: Vec<Condition>,
) -> Batches {
    Box::new(batches.map(move |batch| {
        let mut batch = batch?;
        for condition in &conditions {
            let values: Option<&ArrayRef> = batch.column_by_name(&condition.column);
            if let Some(values) = values {
                batch = filter_record_batch(&batch, &condition.holds(values)?)?;
            }
        }
        Ok(batch)
    }))
}
