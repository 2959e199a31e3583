//! Rows that are stored of a table.

use std::fs::File;

use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use cellblock_artifact::ArtifactId;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::cell::{self, ValueLimit};
use super::order::RowOrder;
use crate::output::OutputError;

/// A page of a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TablePage {
    /// Number of the page, from 0.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Index of the first row among the stored rows, from 0.
    pub first_row: u64,
    /// The rows, one value per column, in the form of `head`.
    #[schemars(schema_with = "rows_schema")]
    pub rows: Vec<Vec<Value>>,
}

/// Lists the types of a value: some clients accept no schema that permits anything.
fn rows_schema(_: &mut SchemaGenerator) -> Schema {
    let types = ["null", "boolean", "number", "string", "array", "object"].map(|name| json!({"type": name}));
    json_schema!({"type": "array", "items": {"type": "array", "items": {"anyOf": types}}})
}

/// Rows of a table in Parquet. Row groups before the first of them are not read.
pub(super) struct SelectedRows {
    pub(super) schema: SchemaRef,
    /// Number of rows of the whole table.
    pub(super) total: i64,
    pub(super) batches: Box<dyn RecordBatchReader>,
    room: ValueLimit,
}

impl SelectedRows {
    pub(super) fn of(
        file: impl ChunkReader + 'static,
        first_row: u64,
        rows: u32,
    ) -> Result<Self, OutputError> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let schema = SchemaRef::clone(reader.schema());
        Ok(Self {
            total: reader.metadata().file_metadata().num_rows(),
            room: ValueLimit::for_cells(schema.fields().len() * rows as usize),
            schema,
            batches: Box::new(
                reader
                    .with_offset(usize::try_from(first_row).unwrap_or(usize::MAX))
                    .with_limit(rows as usize)
                    .build()?,
            ),
        })
    }

    /// The same in an order.
    pub(super) fn in_order(
        table: ArtifactId,
        file: File,
        order: RowOrder,
        first_row: u64,
        rows: u32,
    ) -> Result<Self, OutputError> {
        let (batch, total) = order.read(table, file, first_row, rows)?;
        let schema = batch.schema();
        Ok(Self {
            total,
            room: ValueLimit::for_cells(schema.fields().len() * rows as usize),
            batches: Box::new(RecordBatchIterator::new([Ok(batch)], SchemaRef::clone(&schema))),
            schema,
        })
    }

    /// Reads them in the form of `head`, one at a time.
    pub(super) fn values(self) -> impl Iterator<Item = Result<Vec<Value>, OutputError>> {
        let room = self.room;
        self.batches.flat_map(move |batch| {
            let (batch, failed) = match batch {
                Ok(batch) => (Some(batch), None),
                Err(error) => (None, Some(Err(error.into()))),
            };
            let rows = batch.into_iter().flat_map(move |batch| {
                (0..batch.num_rows()).map(move |row| Ok(cell::row(&batch, row, room)))
            });
            failed.into_iter().chain(rows)
        })
    }
}

/// Opens a table in Parquet as Arrow batches.
pub(crate) fn batches(file: impl ChunkReader + 'static) -> Result<ParquetRecordBatchReader, OutputError> {
    Ok(ParquetRecordBatchReaderBuilder::try_new(file)?.build()?)
}

/// Reads so many rows of a table in Parquet.
pub(crate) fn rows(
    file: impl ChunkReader + 'static,
    first_row: u64,
    rows: u32,
) -> Result<Vec<Vec<Value>>, OutputError> {
    SelectedRows::of(file, first_row, rows)?.values().collect()
}
