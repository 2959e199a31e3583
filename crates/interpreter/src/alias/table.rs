//! The shape of a recorded table, from its metadata alone: no values are decoded.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::Schema;
use cellblock_protocol::InputFormat;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::shape::{Shape, ShapeColumn, ShapeKind};

/// Maximum number of described columns.
const COLUMNS: usize = 256;
/// Maximum size in bytes of the metadata of one Arrow message.
const DESCRIPTION: u64 = 16 << 20;
/// First bytes of an Arrow file; a stream has others.
const MAGIC: &[u8] = b"ARROW1\0\0";
const CONTINUATION: u32 = u32::MAX;

/// Returns a table's shape, or the problem with it. May panic over bytes that only look like Arrow.
pub(super) fn shape(file: &File, format: InputFormat) -> Result<Shape, String> {
    match format {
        InputFormat::Parquet => parquet(file),
        _ => arrow(file),
    }
}

fn parquet(file: &File) -> Result<Shape, String> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file);
    let metadata = metadata.map_err(|error| format!("it is not Parquet ({error})"))?;
    let described = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(described.schema_descr(), described.key_value_metadata());
    let schema = schema.map_err(|error| format!("its schema cannot be read ({error})"))?;
    let rows = u64::try_from(described.num_rows()).map_err(|_| "its number of rows is negative")?;
    let flat = described.schema_descr().num_columns() == schema.fields().len();
    Ok(of_schema(&schema, rows, |column| {
        flat.then(|| nulls(&metadata, column)).flatten()
    }))
}

/// Adds up the row groups' counts, if all have one.
fn nulls(metadata: &ParquetMetaData, column: usize) -> Option<u64> {
    let groups = metadata.row_groups().iter();
    groups
        .map(|group| group.columns().get(column)?.statistics()?.null_count_opt())
        .sum()
}

fn arrow(mut file: &File) -> Result<Shape, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read ({})", error.kind());
    let mut left = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let mut start = [0; 8];
    if left >= 8 {
        file.read_exact(&mut start).map_err(unreadable)?;
    }
    let is_file = start == MAGIC;
    if is_file {
        left -= 8;
    } else {
        file.rewind().map_err(unreadable)?;
    }
    let mut reader = BufReader::new(file);
    let (mut schema, mut rows) = (None, 0_u64);
    while left > 0 {
        let mut length = word(&mut reader, &mut left)?;
        if length == CONTINUATION {
            length = word(&mut reader, &mut left)?;
        }
        let length = u64::from(length);
        if length == 0 {
            if is_file && schema.is_none() {
                // Writers use any padding between the magic bytes and the first message.
                continue;
            }
            break;
        }
        if length > left || length > DESCRIPTION {
            return Err(format!("a message of {length} bytes is not in it"));
        }
        let mut description = Vec::new();
        let description_read = (&mut reader).take(length).read_to_end(&mut description);
        description_read.map_err(unreadable)?;
        left -= length;
        let message = root_as_message(&description).map_err(|_| "it is not Arrow IPC")?;
        match message.header_type() {
            MessageHeader::Schema => {
                let found = message.header_as_schema().ok_or("its schema is missing")?;
                let read = try_fb_to_schema(found);
                schema = Some(read.map_err(|error| format!("its schema cannot be read ({error})"))?);
            }
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or("a batch is missing")?;
                let length = u64::try_from(batch.length()).map_err(|_| "a batch has less than no rows")?;
                rows = rows.saturating_add(length);
            }
            _ => {}
        }
        let body = u64::try_from(message.bodyLength()).map_err(|_| "a body has less than no bytes")?;
        if body > left {
            return Err(format!("a body of {body} bytes is not in it"));
        }
        let skip = i64::try_from(body).map_err(|_| "a body is too large")?;
        reader.seek_relative(skip).map_err(unreadable)?;
        left -= body;
    }
    let schema = schema.ok_or("it is not Arrow IPC")?;
    Ok(of_schema(&schema, rows, |_| None))
}

fn word(reader: &mut impl Read, left: &mut u64) -> Result<u32, String> {
    let mut word = [0; 4];
    *left = left.checked_sub(4).ok_or("it ends in the middle")?;
    reader
        .read_exact(&mut word)
        .map_err(|_| "it ends in the middle")?;
    Ok(u32::from_le_bytes(word))
}

fn of_schema(schema: &Schema, rows: u64, nulls: impl Fn(usize) -> Option<u64>) -> Shape {
    let fields = schema.fields().iter().enumerate().take(COLUMNS);
    let columns = fields.map(|(index, field)| ShapeColumn {
        name: field.name().clone(),
        types: vec![field.data_type().to_string()],
        nulls: nulls(index),
        missing: 0,
        first: None,
        last: None,
        inner: None,
    });
    Shape {
        kind: ShapeKind::Table,
        count: Some(rows),
        columns: columns.collect(),
        unlisted: schema.fields().len().saturating_sub(COLUMNS) as u64,
        sample: None,
    }
}
