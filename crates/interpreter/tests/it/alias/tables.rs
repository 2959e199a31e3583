//! Tables that are recorded as files.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use cellblock_interpreter::alias::{AliasError, ShapeKind};
use cellblock_interpreter::input::InputFormat;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::{file, in_memory, local, read};

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))),
        ("x", Arc::new(Float64Array::from(vec![1.5, 2.5, 3.5]))),
        ("t", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn parquet() -> File {
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = ArrowWriter::try_new(&mut file, batch().schema(), None).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    file
}

fn arrow(stream: bool) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let (batch, schema) = (batch(), batch().schema());
    if stream {
        let mut writer = StreamWriter::try_new(&mut file, &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new(&mut file, &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    file
}

fn bytes(mut file: &File) -> Vec<u8> {
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn tables_are_kept_as_they_are_with_their_rows_and_columns() {
    let (_folder, store) = local();
    for (source, format, rows, nulls) in [
        (parquet(), InputFormat::Parquet, 3, Some(1)),
        (arrow(true), InputFormat::Arrow, 6, None),
        (arrow(false), InputFormat::Arrow, 6, None),
    ] {
        let expected = bytes(&source);
        let entry = store.record_table("rows", source, format).await.unwrap();
        assert_eq!(
            (entry.shape.kind, entry.rows(), entry.is_table()),
            (ShapeKind::Table, Some(rows), true)
        );
        let columns = entry.shape.columns.iter();
        let columns: Vec<_> = columns
            .map(|column| (column.name.as_str(), column.types[0].as_str()))
            .collect();
        assert_eq!(columns, [("n", "Int64"), ("x", "Float64"), ("t", "Utf8")]);
        assert_eq!(entry.shape.columns[0].nulls, nulls);
        assert!(read(store.content(&entry.alias).await.unwrap()) == expected);
    }
}

#[tokio::test]
async fn a_document_names_a_tables_file_instead_of_holding_it() {
    let store = in_memory();
    let source = parquet();
    let length = bytes(&source).len() as u64;
    store
        .record_table("rows", source, InputFormat::Parquet)
        .await
        .unwrap();
    let splice = store.splice(&[("prices", "rows_1")]).await.unwrap();
    let table = splice.spans[0].table.clone().unwrap();
    assert_eq!(
        (table.path.as_str(), table.format, table.bytes),
        ("/tmp/data/rows_1.parquet", InputFormat::Parquet, length)
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&read(splice.content)).unwrap(),
        json!({"prices": {"format": "parquet", "path": "/tmp/data/rows_1.parquet", "rows": 3}})
    );
}

#[tokio::test]
async fn invalid_tables_are_rejected() {
    let store = in_memory();
    let mut cut = bytes(&arrow(true));
    cut.truncate(cut.len() / 2);
    let mut huge = vec![0xff; 8];
    huge[4..].copy_from_slice(&u32::MAX.to_le_bytes());
    for (bytes, format) in [
        (b"{}".to_vec(), InputFormat::Parquet),
        (b"PAR1PAR1".to_vec(), InputFormat::Parquet),
        (Vec::new(), InputFormat::Arrow),
        (b"ARROW1\0\0".to_vec(), InputFormat::Arrow),
        (cut, InputFormat::Arrow),
        (huge, InputFormat::Arrow),
        (b"a,b\n1,2\n".to_vec(), InputFormat::Csv),
    ] {
        let error = store
            .record_table("rows", file(&bytes), format)
            .await
            .unwrap_err();
        assert!(matches!(error, AliasError::Table { .. }), "{format:?}: {error}");
        assert!(
            error
                .to_string()
                .ends_with("; give a whole Arrow IPC or Parquet file"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn damaged_descriptions_are_rejected_or_read_and_never_end_the_host() {
    let store = in_memory();
    for source in [arrow(true), parquet()] {
        let whole = bytes(&source);
        for at in (0..whole.len()).step_by(5) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xa5;
            for format in [InputFormat::Arrow, InputFormat::Parquet] {
                let mut copy = tempfile::tempfile().unwrap();
                copy.write_all(&damaged).unwrap();
                let recorded = store.record_table("rows", copy, format).await;
                assert!(
                    matches!(recorded, Ok(_) | Err(AliasError::Table { .. })),
                    "{at}: {recorded:?}"
                );
            }
        }
    }
}
