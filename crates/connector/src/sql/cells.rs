//! Values of a result, and the columns that they become.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder as _, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int64Builder, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
    UInt64Builder,
};
use arrow_schema::{DataType, TimeUnit};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float32(f32),
    Float(f64),
    /// A number without its decimal point.
    Decimal(i128),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
}

/// Values of a column.
#[derive(Debug)]
pub(super) enum Column {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    UInt(UInt64Builder),
    Float32(Float32Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, DataType),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder, DataType),
}

/// Times without a zone.
pub(super) const LOCAL: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Times in UTC.
pub(super) fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Returns the type of decimal numbers, which are texts if they could have more digits than the type.
pub(super) fn decimal(precision: u32, scale: u32) -> DataType {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale))
            if u32::try_from(scale).is_ok_and(|it| it <= precision.into()) =>
        {
            DataType::Decimal128(precision, scale)
        }
        _ => DataType::Utf8,
    }
}

/// Reads a decimal number as one of so many digits after the point, if that is exact.
pub(super) fn unscaled(text: &str, scale: i8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::try_from(scale).ok()?;
    let padding = scale.checked_sub(part.len())?;
    if !whole
        .bytes()
        .chain(part.bytes())
        .all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let number: i128 = format!("{whole}{part}{}", "0".repeat(padding)).parse().ok()?;
    Some(if negative { -number } else { number })
}

impl Column {
    /// Creates a column; any type without a form of its own is text.
    pub(super) fn new(kind: &DataType) -> Self {
        match kind {
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Int64 => Self::Int(Int64Builder::new()),
            DataType::UInt64 => Self::UInt(UInt64Builder::new()),
            DataType::Float32 => Self::Float32(Float32Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Decimal128(..) => Self::Decimal(
                Decimal128Builder::new().with_data_type(kind.clone()),
                kind.clone(),
            ),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Time64(_) => Self::Time(Time64MicrosecondBuilder::new()),
            DataType::Timestamp(..) => Self::Timestamp(
                TimestampMicrosecondBuilder::new().with_data_type(kind.clone()),
                kind.clone(),
            ),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Adds a value; `false` means that the column does not have such values.
    pub(super) fn push(&mut self, cell: &Cell<'_>) -> bool {
        match (self, cell) {
            (column, Cell::Null) => column.push_null(),
            (Self::Bool(values), Cell::Bool(value)) => values.append_value(*value),
            (Self::Int(values), Cell::Int(value)) => values.append_value(*value),
            (Self::UInt(values), Cell::UInt(value)) => values.append_value(*value),
            (Self::Float32(values), Cell::Float32(value)) => values.append_value(*value),
            (Self::Float(values), Cell::Float(value)) => values.append_value(*value),
            (Self::Decimal(values, _), Cell::Decimal(value)) => values.append_value(*value),
            (Self::Text(values), Cell::Text(value)) => values.append_value(value),
            (Self::Bytes(values), Cell::Bytes(value)) => values.append_value(value),
            (Self::Date(values), Cell::Date(value)) => values.append_value(*value),
            (Self::Time(values), Cell::Time(value)) => values.append_value(*value),
            (Self::Timestamp(values, _), Cell::Timestamp(value)) => values.append_value(*value),
            _ => return false,
        }
        true
    }

    fn push_null(&mut self) {
        match self {
            Self::Bool(values) => values.append_null(),
            Self::Int(values) => values.append_null(),
            Self::UInt(values) => values.append_null(),
            Self::Float32(values) => values.append_null(),
            Self::Float(values) => values.append_null(),
            Self::Decimal(values, _) => values.append_null(),
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Time(values) => values.append_null(),
            Self::Timestamp(values, _) => values.append_null(),
        }
    }

    /// Takes the values.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Int(values) => Arc::new(values.finish()),
            Self::UInt(values) => Arc::new(values.finish()),
            Self::Float32(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            // A builder forgets its type when it is emptied.
            Self::Decimal(values, kind) => {
                let array = values.finish();
                *values = Decimal128Builder::new().with_data_type(kind.clone());
                Arc::new(array)
            }
            Self::Text(values) => Arc::new(values.finish()),
            Self::Bytes(values) => Arc::new(values.finish()),
            Self::Date(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::Timestamp(values, kind) => {
                debug_assert!(!values.is_empty());
                let array = values.finish();
                *values = TimestampMicrosecondBuilder::new().with_data_type(kind.clone());
                Arc::new(array)
            }
        }
    }
}

impl Cell<'_> {
    /// Returns about how many bytes it takes.
    pub(super) const fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64 + 4,
            Self::Bytes(bytes) => bytes.len() as u64 + 4,
            Self::Decimal(_) => 16,
            Self::Null | Self::Bool(_) => 1,
            _ => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_text() {
        assert_eq!(unscaled("-12.30", 2), Some(-1230));
        assert_eq!(unscaled("5", 3), Some(5000));
        assert_eq!(unscaled("-0.05", 2), Some(-5));
        assert_eq!(unscaled("1.234", 2), None);
        assert_eq!(unscaled("NaN", 2), None);
        assert_eq!(unscaled("1e5", 2), None);
        assert_eq!(decimal(38, 38), DataType::Decimal128(38, 38));
        for (precision, scale) in [(39, 2), (0, 0), (5, 6)] {
            assert_eq!(decimal(precision, scale), DataType::Utf8);
        }
    }
}
