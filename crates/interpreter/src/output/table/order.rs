//! Rows of a stored table in the order of one of its columns, of which no other column is read as a whole.

use std::fs::File;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::ord::make_comparator;
use arrow_ord::sort::SortOptions;
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::take_record_batch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::PageIndexPolicy;

use crate::output::OutputError;

/// Maximum size of the column's values in memory.
const BYTES: usize = 512 << 20;

/// An order of rows. Those with equal values keep theirs, those without a value are last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOrder {
    /// Index of the column, from 0.
    pub(crate) column: u32,
    pub(crate) descending: bool,
}

impl RowOrder {
    /// Reads so many rows, beginning with a row of this order. Returns also the number of rows of the whole table.
    pub(super) fn read(
        self,
        file: File,
        first_row: u64,
        rows: u32,
    ) -> Result<(RecordBatch, i64), OutputError> {
        // Where the pages begin: the rows are all over the table.
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let schema = metadata.schema();
        let total = metadata.metadata().file_metadata().num_rows();
        let values = self.values(
            file.try_clone().map_err(parquet::errors::ParquetError::from)?,
            &metadata,
        )?;
        let chosen = self.choose(&values, first_row, rows)?;
        if chosen.is_empty() {
            return Ok((RecordBatch::new_empty(schema.clone()), total));
        }
        let mut ascending = chosen.clone();
        ascending.sort_unstable();
        let ranges = ascending.iter().map(|row| *row as usize..*row as usize + 1);
        let selection = RowSelection::from_consecutive_ranges(ranges, values.len());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .with_row_selection(selection)
            .build()?;
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        let found = concat_batches(schema, &batches)?;
        let places = chosen
            .iter()
            .map(|row| ascending.partition_point(|other| other < row));
        let places = UInt32Array::from_iter_values(places.filter_map(|place| u32::try_from(place).ok()));
        Ok((take_record_batch(&found, &places)?, total))
    }

    /// Reads the column.
    fn values(self, file: File, metadata: &ArrowReaderMetadata) -> Result<ArrayRef, OutputError> {
        let columns = metadata.schema().fields().len();
        let column = self.column as usize;
        let field = metadata.schema().fields().get(column).ok_or_else(|| {
            unordered(format!(
                "it is {column}, but the table has {columns} columns; the first is 0"
            ))
        })?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        let only = ProjectionMask::roots(builder.parquet_schema(), [column]);
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for batch in builder.with_projection(only).build()? {
            let part = ArrayRef::clone(batch?.column(0));
            bytes += part.get_array_memory_size();
            if bytes > BYTES {
                let reason = format!(
                    "the column `{}` has more than {} MiB of values; sort the table in a cell and show it",
                    field.name(),
                    BYTES >> 20
                );
                return Err(unordered(reason));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Ok(arrow_array::new_empty_array(field.data_type()));
        }
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
    }

    /// Returns the numbers of the rows in this order. It sorts no more than these.
    fn choose(self, values: &ArrayRef, first_row: u64, rows: u32) -> Result<Vec<u32>, OutputError> {
        let options = SortOptions {
            descending: self.descending,
            nulls_first: false,
        };
        let compare = make_comparator(values, values, options)
            .map_err(|_| unordered(format!("values of the type {} have no order", values.data_type())))?;
        let order = |a: &u32, b: &u32| compare(*a as usize, *b as usize).then(a.cmp(b));
        let count = u32::try_from(values.len())
            .map_err(|_| unordered(format!("{} rows are too many to be sorted", values.len())))?;
        let mut all: Vec<u32> = (0..count).collect();
        let first = usize::try_from(first_row).unwrap_or(usize::MAX);
        if first >= all.len() {
            return Ok(Vec::new());
        }
        if first > 0 {
            all.select_nth_unstable_by(first, order);
        }
        let rest = &mut all[first..];
        let wanted = rest.len().min(rows as usize);
        if wanted < rest.len() {
            rest.select_nth_unstable_by(wanted, order);
        }
        let chosen = &mut rest[..wanted];
        chosen.sort_unstable_by(order);
        Ok(chosen.to_vec())
    }
}

fn unordered(reason: String) -> OutputError {
    OutputError::Order { reason }
}
