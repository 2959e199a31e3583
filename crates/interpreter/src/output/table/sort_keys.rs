//! Keys of a column's values, by which rows are sorted. Numbers and times fit into their keys, so
//! that the column itself is never in memory as a whole; other values are read once, in one piece,
//! and compared where the beginnings in their keys are equal.

use std::cmp::Ordering;
use std::fs::File;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_ord::sort::SortOptions;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;

use super::order::RowOrder;
use crate::output::OutputError;

/// Maximum size of a column's values in memory, if they do not fit into keys.
const BYTES: u64 = 512 << 20;
/// Number of rows that are read at a time of a column whose values fit into keys.
const BATCH: usize = 65_536;
const SIGN: u64 = 1 << 63;

/// The two halves of a number that compares as a value does, and the value's row, which decides
/// between equal ones.
type Key = [u32; 3];

/// Rows and what they are sorted by.
pub(super) struct SortKeys {
    with_value: Vec<Key>,
    without_value: Vec<u32>,
    /// Comparison of two rows whose keys begin with the same number, if that is not all of their values.
    values: Option<DynComparator>,
}

/// A number for a value, such that a greater value has no smaller number.
enum KeyForm {
    Unsigned,
    Signed,
    Float,
    /// The first eight bytes.
    Beginning,
    /// None: only the values themselves have an order.
    Nothing,
}

impl KeyForm {
    const fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::Unsigned
            }
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Self::Signed,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                Self::Beginning
            }
            _ => Self::Nothing,
        }
    }

    /// Whether equal numbers mean equal values.
    const fn is_whole(&self) -> bool {
        matches!(self, Self::Unsigned | Self::Signed | Self::Float)
    }

    /// Calls back with the number of each row that has a value.
    fn numbers(&self, values: &ArrayRef, mut each: impl FnMut(usize, u64)) -> Result<(), OutputError> {
        let rows = (0..values.len()).filter(|row| values.is_valid(*row));
        match self {
            Self::Unsigned => {
                let values = cast(values, &DataType::UInt64)?;
                let values = values.as_primitive::<UInt64Type>().values();
                rows.for_each(|row| each(row, values[row]));
            }
            Self::Signed => {
                let values = cast(values, &DataType::Int64)?;
                let values = values.as_primitive::<Int64Type>().values();
                rows.for_each(|row| each(row, values[row].cast_unsigned() ^ SIGN));
            }
            Self::Float => {
                let values = cast(values, &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>().values();
                rows.for_each(|row| {
                    let bits = values[row].to_bits();
                    // The order of `f64::total_cmp`.
                    each(row, if bits & SIGN == 0 { bits | SIGN } else { !bits });
                });
            }
            Self::Beginning => match values.data_type() {
                DataType::Utf8 => rows.for_each(|row| {
                    each(row, beginning(values.as_string::<i32>().value(row).as_bytes()));
                }),
                DataType::LargeUtf8 => rows.for_each(|row| {
                    each(row, beginning(values.as_string::<i64>().value(row).as_bytes()));
                }),
                DataType::Binary => {
                    rows.for_each(|row| each(row, beginning(values.as_binary::<i32>().value(row))));
                }
                _ => rows.for_each(|row| each(row, beginning(values.as_binary::<i64>().value(row)))),
            },
            Self::Nothing => rows.for_each(|row| each(row, 0)),
        }
        Ok(())
    }
}

fn beginning(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

impl SortKeys {
    /// Reads the column of an order.
    pub(super) fn read(
        order: RowOrder,
        file: &File,
        metadata: &ArrowReaderMetadata,
    ) -> Result<Self, OutputError> {
        let fields = metadata.schema().fields();
        let column = order.column as usize;
        let field = fields.get(column).ok_or_else(|| {
            unordered(format!(
                "it is {column}, but the table has {} columns; the first is 0",
                fields.len()
            ))
        })?;
        let total = metadata.metadata().file_metadata().num_rows();
        let rows = u32::try_from(total)
            .map_err(|_| unordered(format!("{total} rows are too many to be sorted")))?
            as usize;
        let form = KeyForm::of(field.data_type());
        let batch = if form.is_whole() {
            BATCH
        } else {
            if value_bytes(metadata, column) > BYTES {
                let reason = format!(
                    "the column `{}` has more than {} MiB of values; sort the table in a cell and show it",
                    field.name(),
                    BYTES >> 20
                );
                return Err(unordered(reason));
            }
            // In one piece, which needs no copy.
            rows.max(1)
        };
        let file = file.try_clone().map_err(parquet::errors::ParquetError::from)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        let only = ProjectionMask::roots(builder.parquet_schema(), [column]);
        let mut keys = Self {
            with_value: Vec::with_capacity(rows),
            without_value: Vec::new(),
            values: None,
        };
        let (mut pieces, mut first) = (Vec::new(), 0);
        for batch in builder.with_projection(only).with_batch_size(batch).build()? {
            let values = ArrayRef::clone(batch?.column(0));
            first = keys.add(&form, &values, first, order.descending)?;
            if !form.is_whole() {
                pieces.push(values);
            }
        }
        let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
        if !pieces.is_empty() {
            let options = SortOptions {
                descending: order.descending,
                nulls_first: false,
            };
            // A single piece is not copied.
            let values = concat(&pieces)?;
            let compare = make_comparator(&values, &values, options);
            let compare = compare
                .map_err(|_| unordered(format!("values of the type {} have no order", values.data_type())))?;
            keys.values = Some(compare);
        }
        Ok(keys)
    }

    /// Adds the rows of a batch, the first of which has this number. Returns the number of the next one.
    fn add(
        &mut self,
        form: &KeyForm,
        values: &ArrayRef,
        first: u32,
        descending: bool,
    ) -> Result<u32, OutputError> {
        // The caller has checked that the number of rows fits.
        let number = |row: usize| first.saturating_add(u32::try_from(row).unwrap_or(u32::MAX));
        form.numbers(values, |row, value| {
            let value = if descending { !value } else { value };
            #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
            self.with_value
                .push([(value >> 32) as u32, value as u32, number(row)]);
        })?;
        if values.null_count() > 0 {
            let missing = (0..values.len()).filter(|row| values.is_null(*row));
            self.without_value.extend(missing.map(number));
        }
        Ok(number(values.len()))
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.with_value.len() + self.without_value.len()
    }

    /// Returns the numbers of so many rows in order, beginning with one of the order. It sorts no
    /// more than these.
    pub(super) fn sorted(self, first: usize, rows: usize) -> Vec<u32> {
        let Self {
            mut with_value,
            without_value,
            values,
        } = self;
        match values {
            None => select(&mut with_value, first, rows, Ord::cmp),
            Some(compare) => select(&mut with_value, first, rows, |one, other| {
                one[..2]
                    .cmp(&other[..2])
                    .then_with(|| compare(one[2] as usize, other[2] as usize))
                    .then(one[2].cmp(&other[2]))
            }),
        }
        let numbers = with_value.iter().map(|key| key[2]).chain(without_value);
        numbers.skip(first).take(rows).collect()
    }
}

/// Moves the keys of these places there, in order.
fn select(keys: &mut [Key], first: usize, count: usize, order: impl Fn(&Key, &Key) -> Ordering) {
    if first >= keys.len() {
        return;
    }
    if first > 0 {
        keys.select_nth_unstable_by(first, &order);
    }
    let rest = &mut keys[first..];
    let wanted = rest.len().min(count);
    if wanted < rest.len() {
        rest.select_nth_unstable_by(wanted, &order);
    }
    rest[..wanted].sort_unstable_by(order);
}

/// Returns the size of a column's values in memory, as the table's file says; this host has written it.
fn value_bytes(metadata: &ArrowReaderMetadata, root: usize) -> u64 {
    let schema = metadata.parquet_schema();
    let groups = metadata.metadata().row_groups().iter();
    let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
    let own = chunks.filter(|(leaf, _)| schema.get_column_root_idx(*leaf) == root);
    let bytes = own.map(|(_, chunk)| {
        let values = u64::try_from(chunk.num_values()).unwrap_or(0);
        let width = match chunk.column_type() {
            Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(chunk.column_descr().type_length()).unwrap_or(0),
            Type::INT96 => 12,
            _ => 8,
        };
        let texts = chunk.unencoded_byte_array_data_bytes().unwrap_or(0);
        values
            .saturating_mul(width)
            .saturating_add(u64::try_from(texts).unwrap_or(0))
    });
    bytes.fold(0, u64::saturating_add)
}

fn unordered(reason: String) -> OutputError {
    OutputError::Order { reason }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
        LargeBinaryArray, RecordBatch, StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
        UInt64Array,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ArrowReaderOptions;

    use super::*;

    fn stored(values: &ArrayRef) -> File {
        let table = RecordBatch::try_from_iter_with_nullable([("x", ArrayRef::clone(values), true)]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(&mut file, table.schema(), None).unwrap();
        // Several row groups.
        for offset in (0..table.num_rows()).step_by(3) {
            writer
                .write(&table.slice(offset, 3.min(table.num_rows() - offset)))
                .unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        file
    }

    fn sorted(values: &ArrayRef, descending: bool, first: usize, rows: usize) -> Vec<u32> {
        let file = stored(values);
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).unwrap();
        let order = RowOrder {
            column: 0,
            descending,
        };
        let keys = SortKeys::read(order, &file, &metadata).unwrap();
        assert_eq!(keys.rows(), values.len());
        keys.sorted(first, rows)
    }

    /// The order that the library's comparison gives.
    fn expected(values: &ArrayRef, descending: bool) -> Vec<u32> {
        let options = SortOptions {
            descending,
            nulls_first: false,
        };
        let compare = make_comparator(values, values, options).unwrap();
        let mut rows: Vec<u32> = (0..u32::try_from(values.len()).unwrap()).collect();
        rows.sort_by(|one, other| compare(*one as usize, *other as usize));
        rows
    }

    /// Numbers of every type, with equal and missing ones among them.
    fn numbers() -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from(vec![
                Some(3),
                None,
                Some(i64::MIN),
                Some(-1),
                Some(3),
                None,
                Some(i64::MAX),
                Some(0),
            ])),
            Arc::new(Int8Array::from(vec![
                Some(-128),
                Some(127),
                None,
                Some(0),
                Some(-1),
                Some(-128),
            ])),
            Arc::new(UInt64Array::from(vec![
                Some(u64::MAX),
                Some(0),
                None,
                Some(1 << 63),
                Some(7),
                Some(0),
            ])),
            Arc::new(Float64Array::from(vec![
                Some(0.0),
                Some(-0.0),
                Some(f64::NAN),
                Some(f64::NEG_INFINITY),
                None,
                Some(-1.5),
                Some(f64::INFINITY),
                Some(2.5),
                Some(-1.5),
            ])),
            Arc::new(Float32Array::from(vec![
                Some(1.5),
                Some(-7.25),
                None,
                Some(f32::MAX),
                Some(f32::MIN_POSITIVE),
                Some(-7.25),
            ])),
        ]
    }

    /// Values of every other type, with equal and missing ones among them.
    fn other_values() -> Vec<ArrayRef> {
        vec![
            Arc::new(BooleanArray::from(vec![
                Some(true),
                Some(false),
                None,
                Some(true),
                Some(false),
            ])),
            Arc::new(Date32Array::from(vec![
                Some(19000),
                Some(-3),
                None,
                Some(0),
                Some(19000),
            ])),
            Arc::new(Time32MillisecondArray::from(vec![
                Some(5),
                None,
                Some(1),
                Some(5),
            ])),
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(-1), Some(1 << 50), None, Some(0), Some(-1)])
                    .with_timezone("Europe/Berlin"),
            ),
            Arc::new(StringArray::from(vec![
                Some("beginning-b"),
                Some("beginning-a"),
                Some(""),
                None,
                Some("beginnin"),
                Some("a\0"),
                Some("a"),
                Some("ä"),
                Some("beginning-a"),
            ])),
            Arc::new(LargeBinaryArray::from(vec![
                Some(b"\xff".as_slice()),
                Some(b"\0\0"),
                Some(b"\0"),
                None,
                Some(b"12345678z"),
                Some(b"12345678a"),
            ])),
            Arc::new(
                Decimal128Array::from(vec![
                    Some(10_i128.pow(30)),
                    Some(-5),
                    None,
                    Some(10_i128.pow(30) - 1),
                    Some(-5),
                ])
                .with_precision_and_scale(38, 2)
                .unwrap(),
            ),
        ]
    }

    #[test]
    fn rows_of_each_type_are_in_order_with_equal_ones_as_they_were_and_missing_ones_last() {
        for values in &[numbers(), other_values()].concat() {
            for descending in [false, true] {
                let (wanted, rows) = (expected(values, descending), values.len());
                let kind = values.data_type();
                assert_eq!(
                    sorted(values, descending, 0, usize::MAX),
                    wanted,
                    "{kind} {descending}"
                );
                for first in 0..=rows {
                    let page = wanted[first..rows.min(first + 2)].to_vec();
                    assert_eq!(
                        sorted(values, descending, first, 2),
                        page,
                        "{kind} {descending} {first}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_column_of_too_many_bytes_is_known_before_it_is_read() {
        // Equal values, which a dictionary stores once.
        let values: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20); 30]));
        let file = stored(&values);
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).unwrap();
        let bytes = value_bytes(&metadata, 0);
        assert!((30 << 20..31 << 20).contains(&bytes), "{bytes}");
    }
}
