//! Whether a column has values that repeat, so that a dictionary makes it smaller.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::parquet::RowGroup;

/// The rows that are looked at: blocks of neighbors, spread over the row group. Neighbors show runs
/// of equal values, blocks show values that come back.
const BLOCKS: usize = 16;
const BLOCK_ROWS: usize = 256;
/// Row groups with fewer rows are not worth looking at.
const FEWEST_ROWS: usize = 2 * BLOCKS * BLOCK_ROWS;
/// With more distinct values among 20, a dictionary and the numbers of its entries are about as
/// large as the values themselves.
const MOST_DISTINCT_OF_20: usize = 19;

/// Returns whether a dictionary may make a column smaller, as far as a sample of its rows shows.
/// Batches make no difference.
pub(super) fn pays(group: &RowGroup, column: usize) -> bool {
    if group.rows < FEWEST_ROWS {
        return true;
    }
    let (mut distinct, mut seen) = (HashSet::with_capacity(BLOCKS * BLOCK_ROWS), 0);
    let mut first = 0;
    for batch in &group.batches {
        let Some(values) = Values::of(batch, column) else {
            return true;
        };
        for block in 0..BLOCKS {
            let start = block * (group.rows / BLOCKS);
            let rows = start.max(first)..(start + BLOCK_ROWS).min(first + batch.num_rows());
            seen += values.add(
                rows.start - first..rows.end.max(rows.start) - first,
                &mut distinct,
            );
        }
        first += batch.num_rows();
    }
    distinct.len() * 20 <= seen * MOST_DISTINCT_OF_20
}

/// Hashes the value of a row.
type RowHasher<'a> = Box<dyn Fn(usize, &mut DefaultHasher) + 'a>;

/// The values of one column of a batch.
struct Values<'a> {
    array: &'a dyn Array,
    read: RowHasher<'a>,
}

impl<'a> Values<'a> {
    /// Returns nothing for types that have no dictionary, or whose parts would have one each.
    fn of(batch: &'a RecordBatch, column: usize) -> Option<Self> {
        let array = batch.column(column).as_ref();
        let read: RowHasher<'a> = match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                Box::new(|at, hasher| texts.value(at).hash(hasher))
            }
            DataType::LargeUtf8 => {
                let texts = array.as_string::<i64>();
                Box::new(|at, hasher| texts.value(at).hash(hasher))
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                Box::new(|at, hasher| bytes.value(at).hash(hasher))
            }
            DataType::LargeBinary => {
                let bytes = array.as_binary::<i64>();
                Box::new(|at, hasher| bytes.value(at).hash(hasher))
            }
            plain => {
                let (width, data) = (plain.primitive_width()?, array.to_data());
                let values = data.buffers().first()?.clone();
                let first = data.offset();
                Box::new(move |at, hasher| {
                    let start = (first + at) * width;
                    values[start..start + width].hash(hasher);
                })
            }
        };
        Some(Self { array, read })
    }

    /// Adds the values of some rows, and returns how many there were.
    fn add(&self, rows: Range<usize>, distinct: &mut HashSet<u64>) -> usize {
        let there = rows.filter(|row| self.array.is_valid(*row));
        there
            .map(|row| {
                let mut hasher = DefaultHasher::new();
                (self.read)(row, &mut hasher);
                distinct.insert(hasher.finish());
            })
            .count()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    const ROWS: i64 = 65_536;

    /// A group of one column, in batches of so many rows.
    fn group(column: ArrayRef, batch_rows: usize) -> RowGroup {
        let table = RecordBatch::try_from_iter([("column", column)]).unwrap();
        let rows = table.num_rows();
        let slices = (0..rows).step_by(batch_rows);
        let mut group = RowGroup::default();
        group.batches = slices
            .map(|at| table.slice(at, batch_rows.min(rows - at)))
            .collect();
        group.rows = rows;
        group
    }

    fn pays_for(column: impl Array + 'static) -> bool {
        let column: ArrayRef = Arc::new(column);
        let whole = pays(&group(Arc::clone(&column), usize::MAX), 0);
        for batch_rows in [1000, 4096, 50_000] {
            assert_eq!(pays(&group(Arc::clone(&column), batch_rows), 0), whole);
        }
        whole
    }

    #[test]
    fn a_column_of_distinct_values_has_no_dictionary() {
        assert!(!pays_for(Int64Array::from_iter_values(0..ROWS)));
        assert!(!pays_for(StringArray::from_iter_values(
            (0..ROWS).map(|row| format!("text {row}"))
        )));
        let some =
            (0..ROWS).map(|row| (row % 3 == 0).then_some(1.0 / f64::from(i32::try_from(row + 1).unwrap())));
        assert!(!pays_for(some.collect::<Float64Array>()));
    }

    #[test]
    fn a_column_whose_values_come_back_or_run_has_a_dictionary() {
        assert!(pays_for(Int64Array::from_iter_values(
            (0..ROWS).map(|row| row % 1000)
        )));
        assert!(pays_for(Int64Array::from_iter_values(
            (0..ROWS).map(|row| row / 2)
        )));
        assert!(pays_for(StringArray::from_iter_values(
            (0..ROWS).map(|row| format!("text {}", row % 5000))
        )));
        assert!(pays_for(Int64Array::from(vec![None; 65_536])));
    }

    #[test]
    fn a_short_column_has_a_dictionary() {
        assert!(pays_for(Int64Array::from_iter_values(0..1000)));
    }
}
