//! Rows of a stored table in the order of one of its columns, of which no other column is read as a whole.

use std::fs::File;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use cellblock_artifact::ArtifactId;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::PageIndexPolicy;

use super::order_cache;
use super::sort_keys::SortKeys;
use crate::output::OutputError;

/// An order of rows. Those with equal values keep theirs, those without a value are last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowOrder {
    /// Index of the column, from 0.
    pub(crate) column: u32,
    pub(crate) descending: bool,
}

impl RowOrder {
    /// Reads so many rows of a stored table, beginning with a row of this order. Returns also the
    /// number of rows of the whole table.
    pub(super) fn read(
        self,
        table: ArtifactId,
        file: File,
        first_row: u64,
        rows: u32,
    ) -> Result<(RecordBatch, i64), OutputError> {
        // Where the pages begin: the rows are all over the table.
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let schema = metadata.schema();
        let total = metadata.metadata().file_metadata().num_rows();
        let chosen = self.choose(table, &file, &metadata, (first_row, rows))?;
        if chosen.is_empty() {
            return Ok((RecordBatch::new_empty(schema.clone()), total));
        }
        let mut ascending = chosen.clone();
        ascending.sort_unstable();
        let ranges = ascending.iter().map(|row| *row as usize..*row as usize + 1);
        let selection = RowSelection::from_consecutive_ranges(ranges, usize::try_from(total).unwrap_or(0));
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .with_row_selection(selection)
            .build()?;
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        let found = concat_batches(schema, &batches)?;
        let places = chosen
            .iter()
            .map(|row| ascending.partition_point(|other| other < row));
        let places =
            arrow_array::UInt32Array::from_iter_values(places.filter_map(|place| u32::try_from(place).ok()));
        Ok((take_record_batch(&found, &places)?, total))
    }

    /// Returns the numbers of so many rows in this order. An order that is small enough is kept for
    /// the next page; of a larger one, only these rows are sorted.
    fn choose(
        self,
        table: ArtifactId,
        file: &File,
        metadata: &ArrowReaderMetadata,
        (first_row, rows): (u64, u32),
    ) -> Result<Vec<u32>, OutputError> {
        let first = usize::try_from(first_row).unwrap_or(usize::MAX);
        let page = |order: &[u32]| order.iter().skip(first).take(rows as usize).copied().collect();
        if let Some(order) = order_cache::find(table, self) {
            return Ok(page(&order));
        }
        let keys = SortKeys::read(self, file, metadata)?;
        if !order_cache::has_room(keys.rows()) {
            return Ok(keys.sorted(first, rows as usize));
        }
        let order = Arc::new(keys.sorted(0, usize::MAX));
        order_cache::keep(table, self, Arc::clone(&order));
        Ok(page(&order))
    }
}
