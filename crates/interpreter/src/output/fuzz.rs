//! Entry points for fuzzers: each takes any bytes, must return, and asserts properties of accepted
//! ones.

use std::fs::File;
use std::io::{Read, Seek};

use cellblock_protocol::{Blob, Column, Dataframe, DataframeLibrary, ImageMime};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{DecodingLimits, picture, table};

/// Maximum size in bytes of a table's shown rows as JSON: 200,000 characters, each escaped, with
/// separators.
const SHOWN_BYTES: usize = 2 << 20;

/// Reads bytes as a table. The first byte is the declared number of rows, the second the number of
/// head and tail rows of a longer one; the rest is the stream, whose schema determines the declared
/// columns.
pub fn dataframe(data: &[u8]) {
    let [rows, cut, stream @ ..] = data else { return };
    let limits = DecodingLimits {
        columns: 64,
        batch_bytes: 1 << 20,
        free_cells: 1 << 16,
        batch_rows: 1 << 12,
        ..DecodingLimits::default()
    };
    let blob = Blob::Memory(stream.to_vec());
    let columns = table::fuzz_columns(&blob, &limits)
        .into_iter()
        .map(|name| Column {
            name,
            dtype: String::new(),
        });
    let (rows, tail) = (u64::from(*rows), u64::from(*cut).min(u64::from(*rows)));
    let announced = Dataframe {
        name: None,
        library: DataframeLibrary::Pandas,
        rows: if *cut == 0 { rows } else { 1000 },
        columns: columns.collect(),
        index: Vec::new(),
        truncated: *cut != 0,
        head_rows: rows - tail,
        tail_rows: tail,
        series: false,
    };
    let stored = || {
        table::store(
            &announced,
            &blob,
            &limits,
            tempfile::tempfile().expect("a temporary file can be made"),
        )
    };
    let Ok(read) = stored() else { return };
    let columns = announced.columns.len();
    assert!(
        read.head.len() <= 10 && read.tail.len() <= 5,
        "too many rows are shown"
    );
    assert!(
        read.head.iter().chain(&read.tail).all(|row| row.len() == columns),
        "a row has a value per column"
    );
    assert!(
        read.nulls.len() == columns && read.arrow_types.len() == columns,
        "each column is described"
    );
    assert!(
        read.nulls.iter().all(|nulls| *nulls <= rows),
        "there are more nulls than rows"
    );
    let shown = serde_json::json!([read.head, read.tail]).to_string().len();
    assert!(shown <= SHOWN_BYTES, "the shown rows have {shown} bytes");
    let Ok(file) = read.file else { return };
    let bytes = content(&file);
    let again = stored().expect("what was read once is read twice").file;
    let again = content(&again.expect("what was written once is written twice"));
    assert!(bytes == again, "the same table is written as the same bytes");
    let parquet = ParquetRecordBatchReaderBuilder::try_new(file).expect("what was written is Parquet");
    let written = parquet.metadata().file_metadata();
    assert_eq!(u64::try_from(written.num_rows()), Ok(rows));
    let names: Vec<_> = parquet
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let announced: Vec<_> = announced.columns.into_iter().map(|column| column.name).collect();
    assert_eq!(names, announced);
    let batches = parquet.build().expect("what was written can be read");
    let read = batches.map(|batch| batch.expect("what was written can be read").num_rows() as u64);
    assert_eq!(read.sum::<u64>(), rows);
}

fn content(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .expect("a temporary file can be read");
    bytes
}

/// Reads bytes as a picture of each format.
pub fn image(data: &[u8]) {
    let blob = Blob::Memory(data.to_vec());
    let limits = DecodingLimits::default();
    for mime in [
        ImageMime::Png,
        ImageMime::Jpeg,
        ImageMime::Gif,
        ImageMime::Webp,
        ImageMime::Svg,
    ] {
        let Ok(size) = picture::check(mime, &blob, &limits) else {
            continue;
        };
        assert_eq!(
            size.is_none(),
            mime == ImageMime::Svg,
            "only a drawing has no size"
        );
        let Some(size) = size else { continue };
        for side in [size.width, size.height] {
            assert!((1..=limits.side).contains(&side), "{side} pixels");
        }
        if mime == ImageMime::Png {
            assert_eq!(data[16..20], size.width.to_be_bytes());
            assert_eq!(data[20..24], size.height.to_be_bytes());
            assert!(
                data.ends_with(b"\0\0\0\0IEND\xaeB`\x82"),
                "nothing follows the end of a PNG"
            );
        }
    }
}
