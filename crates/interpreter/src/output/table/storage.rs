//! Columns as Parquet has them: it knows neither seconds nor days in milliseconds.
//!
//! Without a logical type, other readers would take such times for bare numbers.

use arrow_array::types::{ArrowPrimitiveType, Date32Type, Time32MillisecondType, TimestampMillisecondType};
use arrow_array::{
    Array, Date64Array, PrimitiveArray, RecordBatch, Time32SecondArray, TimestampSecondArray, make_array,
};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The schema that a table has in Parquet.
pub(super) fn schema(of: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = of.fields().iter().map(field).collect();
    SchemaRef::new(Schema::new(fields))
}

/// Converts a batch to this schema. The error says which column has no such form, and why.
pub(super) fn batch(batch: &RecordBatch, into: &SchemaRef) -> Result<RecordBatch, String> {
    let columns = batch.columns().iter().zip(into.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(column.clone());
        }
        let converted = convert(column.to_data(), field.data_type());
        converted.map(make_array).map_err(|error| {
            let name: String = field.name().chars().take(100).collect();
            format!("column {name:?} has no Parquet form: {error}")
        })
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(SchemaRef::clone(into), columns).map_err(|error| error.to_string())
}

fn field(of: &FieldRef) -> FieldRef {
    let kind = data_type(of.data_type());
    if kind == *of.data_type() {
        return FieldRef::clone(of);
    }
    FieldRef::new(Field::new(of.name(), kind, of.is_nullable()))
}

fn data_type(of: &DataType) -> DataType {
    match of {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

fn convert(data: ArrayData, into: &DataType) -> Result<ArrayData, ArrowError> {
    if data.data_type() == into {
        return Ok(data);
    }
    match (data.data_type().clone(), into) {
        (DataType::Timestamp(..), _) => {
            let seconds = TimestampSecondArray::from(data);
            let milliseconds: PrimitiveArray<TimestampMillisecondType> =
                seconds.try_unary(|value| checked(value.checked_mul(1000), value))?;
            Ok(milliseconds.with_data_type(into.clone()).into_data())
        }
        (DataType::Time32(_), _) => {
            let seconds = Time32SecondArray::from(data);
            leaf::<Time32MillisecondType>(
                seconds.try_unary(|value| checked(value.checked_mul(1000), value.into())),
            )
        }
        (DataType::Date64, _) => {
            let days = Date64Array::from(data);
            leaf::<Date32Type>(days.try_unary(|value| {
                let day = (value % DAY == 0).then(|| i32::try_from(value / DAY).ok());
                checked(day.flatten(), value)
            }))
        }
        (_, into) => {
            let kinds: Vec<&DataType> = match into {
                DataType::List(item)
                | DataType::LargeList(item)
                | DataType::FixedSizeList(item, _)
                | DataType::Map(item, _) => vec![item.data_type()],
                DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
                _ => Vec::new(),
            };
            let children = data.child_data().iter().cloned().zip(kinds);
            let children = children
                .map(|(child, kind)| convert(child, kind))
                .collect::<Result<_, _>>()?;
            data.into_builder()
                .data_type(into.clone())
                .child_data(children)
                .build()
        }
    }
}

fn leaf<T: ArrowPrimitiveType>(
    array: Result<PrimitiveArray<T>, ArrowError>,
) -> Result<ArrayData, ArrowError> {
    Ok(array?.into_data())
}

fn checked<N>(value: Option<N>, from: i64) -> Result<N, ArrowError> {
    value.ok_or_else(|| ArrowError::ComputeError(format!("the time {from} is out of range")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, ListArray, StructArray, TimestampMillisecondArray};
    use arrow_buffer::OffsetBuffer;
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use proptest::prelude::*;
    use serde_json::json;

    use crate::output::table::tests::{announced, batch, read, stream};

    use super::*;

    fn times(values: Vec<Option<i64>>) -> TimestampSecondArray {
        TimestampSecondArray::from(values)
    }

    /// The types that a reader without our annotations finds.
    fn bare(file: &std::fs::File) -> Vec<DataType> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let reader =
            ParquetRecordBatchReaderBuilder::try_new_with_options(file.try_clone().unwrap(), options)
                .unwrap();
        let fields = reader.schema().fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    }

    #[test]
    fn times_in_seconds_have_logical_types_in_parquet() {
        let item = Arc::new(Field::new(
            "item",
            DataType::Timestamp(TimeUnit::Second, None),
            true,
        ));
        let lists = ListArray::new(
            Arc::clone(&item),
            OffsetBuffer::from_lengths([2, 1]),
            Arc::new(times(vec![Some(1), None, Some(2)])),
            None,
        );
        let structs = StructArray::from(vec![(item, Arc::new(times(vec![Some(3), None])) as _)]);
        let batch = batch(vec![
            ("plain", Arc::new(times(vec![Some(1_704_067_200), None]))),
            (
                "zoned",
                Arc::new(times(vec![Some(0), Some(-1)]).with_timezone("Europe/Berlin")),
            ),
            ("time", Arc::new(Time32SecondArray::from(vec![Some(3600), None]))),
            ("day", Arc::new(Date64Array::from(vec![Some(19_000 * DAY), None]))),
            ("list", Arc::new(lists)),
            ("struct", Arc::new(structs)),
            ("number", Arc::new(Int64Array::from(vec![1, 2]))),
        ]);
        let table = read(&announced(&batch, 2), stream(std::slice::from_ref(&batch))).unwrap();
        assert_eq!(
            json!(table.head[0][..4]),
            json!([
                "2024-01-01T00:00:00",
                "1970-01-01T01:00:00+01:00",
                "01:00:00",
                "2022-01-08"
            ])
        );
        assert_eq!(
            table.arrow_types[0],
            DataType::Timestamp(TimeUnit::Second, None).to_string()
        );
        let found = bare(table.file.as_ref().unwrap());
        let ms = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Millisecond, zone.map(Into::into));
        assert_eq!(
            found[..4],
            [
                ms(None),
                ms(Some("UTC")),
                DataType::Time32(TimeUnit::Millisecond),
                DataType::Date32
            ]
        );
        assert!(matches!(&found[4], DataType::List(item) if *item.data_type() == ms(None)));
        assert!(matches!(&found[5], DataType::Struct(fields) if *fields[0].data_type() == ms(None)));
        assert_eq!(found[6], DataType::Int64);
    }

    #[test]
    fn times_out_of_range_keep_their_table_from_being_stored_and_not_from_being_shown() {
        for column in [
            Arc::new(times(vec![Some(i64::MAX)])) as arrow_array::ArrayRef,
            Arc::new(Time32SecondArray::from(vec![i32::MAX])),
            Arc::new(Date64Array::from(vec![1])),
            Arc::new(Date64Array::from(vec![i64::MAX / DAY * DAY])),
        ] {
            let batch = batch(vec![("x", column)]);
            let table = read(&announced(&batch, 1), stream(&[batch])).unwrap();
            let why = table.file.unwrap_err();
            assert!(why.starts_with("column \"x\" has no Parquet form: "), "{why}");
            assert_eq!(table.head.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn every_time_keeps_its_value(values: Vec<Option<i32>>, nulls_hold: i64) {
            let seconds: Vec<_> = values.iter().map(|value| value.map(i64::from)).collect();
            let array = times(seconds.clone());
            // A slot without a value may hold anything.
            let (kind, mut buffer, nulls) = array.into_parts();
            if let Some(nulls) = &nulls {
                let raw = buffer.iter().zip(nulls.iter());
                buffer = raw.map(|(value, valid)| if valid { *value } else { nulls_hold }).collect();
            }
            let array = TimestampSecondArray::new(buffer, nulls).with_data_type(kind);
            let given = batch(vec![("x", Arc::new(array))]);
            let stored = super::batch(&given, &schema(&given.schema())).unwrap();
            let found = stored.column(0).as_any().downcast_ref::<TimestampMillisecondArray>().unwrap();
            let back: Vec<_> = found.iter().map(|value| value.map(|value| value / 1000)).collect();
            prop_assert_eq!(back, seconds);
        }
    }
}
