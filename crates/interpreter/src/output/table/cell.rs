//! Single values of a table as JSON, of limited size.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use cellblock_protocol::text::counted;
use serde_json::{Map, Number, Value};

/// Number of characters that all shown cells of a table share.
const SHARED_CHARS: usize = 200_000;
/// Range of integers that every JSON reader represents exactly.
const EXACT: u64 = 1 << 53;

/// Limit on how much of a value is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueLimit {
    chars: usize,
}

impl ValueLimit {
    /// Divides the limit among a number of cells.
    pub(super) fn for_cells(cells: usize) -> Self {
        Self {
            chars: (SHARED_CHARS / cells.max(1)).clamp(40, 1000),
        }
    }

    /// Divides the limit among a number of parts; otherwise nested lists would multiply the shown
    /// values.
    fn inner(self, parts: usize) -> Self {
        Self {
            chars: self.chars / parts.max(2),
        }
    }

    /// Returns the number of list items or struct fields that are shown.
    fn items(self) -> usize {
        (self.chars / 10).min(20)
    }
}

/// Returns one row of a batch.
pub(super) fn row(batch: &RecordBatch, row: usize, room: ValueLimit) -> Vec<Value> {
    batch
        .columns()
        .iter()
        .map(|column| value(column, row, room))
        .collect()
}

fn value(array: &dyn Array, row: usize, room: ValueLimit) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => {
            let integer = array.as_primitive::<Int64Type>().value(row);
            if integer.unsigned_abs() <= EXACT {
                integer.into()
            } else {
                integer.to_string().into()
            }
        }
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => {
            let integer = array.as_primitive::<UInt64Type>().value(row);
            if integer <= EXACT {
                integer.into()
            } else {
                integer.to_string().into()
            }
        }
        DataType::Float16 => short_float(array.as_primitive::<Float16Type>().value(row).to_f32()),
        DataType::Float32 => short_float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => text(array.as_string::<i32>().value(row), room),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row), room),
        DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row)),
        DataType::List(_) => list(&array.as_list::<i32>().value(row), room),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row), room),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row), room),
        DataType::Map(..) => list(&array.as_map().value(row), room),
        DataType::Struct(fields) => {
            let inner = room.inner(fields.len().min(room.items()));
            let parts = fields.iter().zip(array.as_struct().columns()).take(room.items());
            let parts = parts.map(|(field, part)| (clip(field.name(), inner), value(part, row, inner)));
            Value::Object(parts.collect::<Map<_, _>>())
        }
        _ => formatted(array, row),
    }
}

/// Returns the shortest decimal of the narrower type, without the digits that widening would add.
fn short_float(value: f32) -> Value {
    float(value.to_string().parse().unwrap_or(f64::from(value)))
}

fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => number.into(),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "inf".into(),
        None => "-inf".into(),
    }
}

fn text(text: &str, room: ValueLimit) -> Value {
    clip(text, room).into()
}

fn clip(text: &str, room: ValueLimit) -> String {
    match text.char_indices().nth(room.chars) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

fn bytes(bytes: &[u8]) -> Value {
    format!("<{}>", counted(bytes.len(), "byte")).into()
}

fn list(items: &dyn Array, room: ValueLimit) -> Value {
    let shown = items.len().min(room.items());
    let inner = room.inner(shown);
    let mut values: Vec<_> = (0..shown).map(|item| value(items, item, inner)).collect();
    if shown < items.len() {
        values.push(format!("... {} more", items.len() - shown).into());
    }
    values.into()
}

/// Formats dates, times, durations and decimals, which have a short text.
fn formatted(array: &dyn Array, row: usize) -> Value {
    let options = FormatOptions::default();
    let text =
        ArrayFormatter::try_new(array, &options).and_then(|formatter| formatter.value(row).try_to_string());
    text.unwrap_or_else(|_| "<not printable>".to_owned()).into()
}
