//! Ordinary tables: what is stored, shown and counted.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    DurationNanosecondArray, Float32Array, Float64Array, Int32Array, Int64Array, NullArray, RecordBatch,
    StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use cellblock_artifact::ArtifactId;
use cellblock_protocol::{Blob, Column, Dataframe, DataframeLibrary};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use super::{Table, store};
use crate::output::{DecodingLimits, OutputError};

pub(super) fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

pub(super) fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

pub(super) fn announced(batch: &RecordBatch, rows: usize) -> Dataframe {
    let schema = batch.schema();
    let columns = schema.fields().iter().map(|field| Column {
        name: field.name().clone(),
        dtype: field.data_type().to_string().to_lowercase(),
    });
    Dataframe {
        name: Some("df".into()),
        library: DataframeLibrary::Pandas,
        rows: rows as u64,
        columns: columns.collect(),
        index: vec![],
        truncated: false,
        head_rows: 0,
        tail_rows: 0,
        series: false,
    }
}

pub(super) fn read(announced: &Dataframe, bytes: Vec<u8>) -> Result<Table<File>, OutputError> {
    let into = tempfile::tempfile().unwrap();
    store(announced, &Blob::Memory(bytes), &DecodingLimits::default(), into)
}

fn integers(name: &str, rows: std::ops::Range<i64>) -> RecordBatch {
    batch(vec![(name, Arc::new(Int64Array::from_iter_values(rows)))])
}

fn id(table: Table<File>) -> ArtifactId {
    let mut bytes = Vec::new();
    table.file.unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"PAR1"));
    ArtifactId::of(&bytes)
}

fn id_of(announced: &Dataframe, batches: &[RecordBatch]) -> ArtifactId {
    let mut table = read(announced, stream(batches)).unwrap();
    table.file.as_mut().unwrap().rewind().unwrap();
    id(table)
}

#[test]
fn every_plain_type_is_shown_as_json_and_comes_back_from_parquet() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    lists.append_null();
    let pair: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let structs = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Int32, true)), pair)]);
    let batch = batch(vec![
        ("int", Arc::new(Int64Array::from(vec![Some(1 << 60), None]))),
        ("float", Arc::new(Float64Array::from(vec![0.1, f64::NAN]))),
        (
            "short",
            Arc::new(Float32Array::from(vec![0.1, f32::NEG_INFINITY])),
        ),
        ("bool", Arc::new(BooleanArray::from(vec![true, false]))),
        ("text", Arc::new(StringArray::from(vec!["añ", ""]))),
        ("bytes", Arc::new(BinaryArray::from(vec![b"abc".as_slice(), b""]))),
        ("date", Arc::new(Date32Array::from(vec![0, 19000]))),
        (
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![0, 1]).with_timezone("Europe/Berlin")),
        ),
        (
            "duration",
            Arc::new(DurationNanosecondArray::from(vec![1_000_000_000, 0])),
        ),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from(vec![12345, -1])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        ("list", Arc::new(lists.finish())),
        ("struct", Arc::new(structs)),
        ("null", Arc::new(NullArray::new(2))),
    ]);
    let table = read(&announced(&batch, 2), stream(std::slice::from_ref(&batch))).unwrap();
    let expected = json!([
        ["1152921504606846976", 0.1, 0.1, true, "añ", "<3 bytes>", "1970-01-01",
            "1970-01-01T01:00:00+01:00", "PT1S", "123.45", ["a", null], {"x": 1}, null],
        [null, "NaN", "-inf", false, "", "<0 bytes>", "2022-01-08",
            "1970-01-01T01:00:00.000000001+01:00", "P0D", "-0.01", null, {"x": 2}, null],
    ]);
    assert_eq!(json!(table.head), expected);
    assert_eq!(json!(table.tail), json!([]));
    assert_eq!(table.nulls, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2]);
    assert_eq!(table.arrow_types[..2], ["Int64", "Float64"]);
    let reader = ParquetRecordBatchReaderBuilder::try_new(table.file.unwrap())
        .unwrap()
        .build()
        .unwrap();
    let back: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(back.len(), 1);
    for (column, original) in back[0].columns().iter().zip(batch.columns()) {
        assert_eq!(column, original);
    }
}

#[test]
fn the_head_and_the_tail_do_not_overlap_whatever_the_batches() {
    for (rows, head, tail) in [
        (0, 0, 0),
        (3, 3, 0),
        (10, 10, 0),
        (12, 10, 2),
        (15, 10, 5),
        (100, 10, 5),
    ] {
        for size in [1, 7, 64] {
            let starts = (0..rows).step_by(size).map(|start| i64::try_from(start).unwrap());
            let end = i64::try_from(rows).unwrap();
            let mut batches: Vec<_> = starts
                .map(|start| integers("n", start..end.min(start + i64::try_from(size).unwrap())))
                .collect();
            batches.push(integers("n", 0..0));
            let table = read(&announced(&batches[0], rows), stream(&batches)).unwrap();
            let first: Vec<_> = (0..head).map(|row| vec![json!(row)]).collect();
            let last: Vec<_> = (rows - tail..rows).map(|row| vec![json!(row)]).collect();
            assert_eq!(
                (table.head, table.tail),
                (first, last),
                "{rows} rows in batches of {size}"
            );
        }
    }
}

#[test]
fn a_cut_table_shows_rows_of_its_head_and_of_its_tail() {
    let part = batch(vec![("n", Arc::new(Int64Array::from(vec![0, 1, 2, 97, 98, 99])))]);
    let cut = Dataframe {
        truncated: true,
        head_rows: 3,
        tail_rows: 3,
        ..announced(&part, 100)
    };
    let table = read(&cut, stream(std::slice::from_ref(&part))).unwrap();
    assert_eq!(json!(table.head), json!([[0], [1], [2]]));
    assert_eq!(json!(table.tail), json!([[97], [98], [99]]));
    let error = read(
        &Dataframe {
            head_rows: 4,
            ..cut.clone()
        },
        stream(std::slice::from_ref(&part)),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "table from a kernel is malformed: it has 6 rows where 7 were announced"
    );
    let error = read(&Dataframe { rows: 5, ..cut }, stream(&[part])).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("its head and tail have 6 rows, but all of it only 5"),
        "{error}"
    );
}

#[test]
fn equal_tables_have_one_identity_and_names_types_and_dtypes_are_part_of_it() {
    let long = integers("n", 0..3);
    let first = id_of(&announced(&long, 3), std::slice::from_ref(&long));
    assert_eq!(id_of(&announced(&long, 3), &[integers("n", 0..3)]), first);
    let named = Dataframe {
        name: Some("other".into()),
        ..announced(&long, 3)
    };
    assert_eq!(
        id_of(&named, std::slice::from_ref(&long)),
        first,
        "the variable's name is not part of a table"
    );

    let other_name = integers("m", 0..3);
    let short = batch(vec![("n", Arc::new(Int32Array::from(vec![0, 1, 2])))]);
    let mut other_dtype = announced(&long, 3);
    other_dtype.columns[0].dtype = "Int64".into();
    let indexed = Dataframe {
        index: vec!["n".into()],
        ..announced(&long, 3)
    };
    let mut ids = vec![
        first,
        id_of(&announced(&other_name, 3), &[other_name]),
        id_of(&announced(&short, 3), &[short]),
        id_of(&other_dtype, std::slice::from_ref(&long)),
        id_of(&indexed, std::slice::from_ref(&long)),
        id_of(&announced(&long, 3), &[integers("n", 1..4)]),
    ];
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[test]
fn a_table_of_many_batches_keeps_every_row() {
    let batches: Vec<_> = (0..3)
        .map(|part| integers("n", part * 65_536..(part + 1) * 65_536))
        .collect();
    let table = read(&announced(&batches[0], 3 * 65_536), stream(&batches)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(table.file.unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 3 * 65_536);
    assert_eq!(json!(table.tail[4]), json!([3 * 65_536 - 1]));
}

#[test]
fn annotations_are_dropped_but_for_the_one_of_pandas() {
    let extension = HashMap::from([("ARROW:extension:name".to_owned(), "evil".to_owned())]);
    let field = Field::new("n", DataType::Int64, true).with_metadata(extension);
    let notes = HashMap::from([
        ("pandas".to_owned(), "{}".to_owned()),
        ("other".to_owned(), "x".to_owned()),
    ]);
    let schema = Arc::new(Schema::new_with_metadata(vec![field], notes));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
    let table = read(&announced(&batch, 1), stream(std::slice::from_ref(&batch))).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(table.file.unwrap()).unwrap();
    assert!(reader.schema().field(0).metadata().is_empty());
    let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let mut keys: Vec<_> = notes.iter().map(|note| note.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["ARROW:schema", "cellblock", "pandas"]);
}

#[test]
fn a_type_without_a_stored_form_is_noted_without_an_error() {
    let words: DictionaryArray<Int32Type> = ["a", "b"].into_iter().collect();
    let batch = batch(vec![("words", Arc::new(words))]);
    let table = read(&announced(&batch, 2), stream(std::slice::from_ref(&batch))).unwrap();
    let why = table.file.unwrap_err();
    assert_eq!(
        why,
        "column \"words\" holds a dictionary, which can not be stored: convert it to strings or plain numbers"
    );
    assert_eq!((table.arrow_types, table.nulls), (vec![String::new()], vec![0]));
}

#[test]
fn a_table_without_columns_is_shown_without_a_file() {
    let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let table = read(&announced(&empty, 0), stream(std::slice::from_ref(&empty))).unwrap();
    assert_eq!(
        table.file.unwrap_err(),
        "a table without columns has no Parquet form"
    );
}

#[test]
fn long_values_are_cut() {
    let batch = batch(vec![(
        "text",
        Arc::new(StringArray::from(vec!["x".repeat(5000)])),
    )]);
    let table = read(&announced(&batch, 1), stream(std::slice::from_ref(&batch))).unwrap();
    assert_eq!(json!(table.head), json!([[format!("{} ...", "x".repeat(1000))]]));
}

#[test]
fn a_type_as_deep_as_the_limit_is_stored() {
    let deepest = (0..31).fold(DataType::Int64, |inner, _| {
        DataType::List(Arc::new(Field::new("item", inner, true)))
    });
    let empty = RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new(
        "d",
        deepest.clone(),
        true,
    )])));
    let row = arrow_array::new_null_array(&deepest, 1);
    let row = RecordBatch::try_new(empty.schema(), vec![row]).unwrap();
    let table = read(&announced(&row, 1), stream(&[row])).unwrap();
    assert!(table.file.is_ok());
    assert_eq!(json!(table.head), json!([[null]]));
}
