//! Tables that connectors return: Arrow IPC streams, and records as columns.

use std::collections::VecDeque;
use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use cellblock_protocol::{self as protocol, Blob, DataframeLibrary};
use serde_json::{Map, Value};

use super::batch::Layout;
use super::cell::{self, Room};
use super::message::Messages;
use super::parquet::Writer;
use super::schema::{self, Checked};
use crate::output::{DecodingLimits, OutputError};

/// What can be said of a stream without keeping it.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) schema: SchemaRef,
    pub(crate) rows: u64,
    /// The first rows.
    pub(crate) head: Vec<Value>,
    /// The last rows, without those in `head`.
    pub(crate) tail: Vec<Value>,
}

/// Checks every message of an Arrow IPC stream, and takes so many rows from both ends. `each` gets the batches.
pub(crate) fn survey(
    blob: &Blob,
    limits: &DecodingLimits,
    ends: usize,
    mut each: impl FnMut(&SchemaRef, RecordBatch) -> Result<RecordBatch, OutputError>,
) -> Result<Survey, OutputError> {
    let mut messages = Messages::new(blob, limits);
    let Some(first) = messages.next()? else {
        return Err(OutputError::table("its stream is empty"));
    };
    let schema = match schema::check(&first, limits)? {
        Checked::Plain(schema) => schema,
        Checked::Unsupported(why) => return Err(OutputError::table(why)),
    };
    let layout = Layout::of(&schema);
    let columns = schema.fields().len();
    let room = Room::for_cells(columns * ends * 2);
    let most = limits.free_cells.saturating_add(blob.len().saturating_mul(8));
    let mut rows = 0_u64;
    let (mut head, mut tail) = (Vec::new(), VecDeque::new());
    while let Some(message) = messages.next()? {
        let batch = each(&schema, layout.decode(&message, limits)?)?;
        rows += batch.num_rows() as u64;
        let cells = rows.saturating_mul(columns as u64);
        if cells > most {
            return Err(OutputError::Limit {
                what: "table in cells",
                limit: most,
                actual: cells,
            });
        }
        let first = batch.num_rows().min(ends - head.len());
        head.extend((0..first).map(|row| object(&schema, cell::row(&batch, row, room))));
        for row in batch.num_rows().saturating_sub(ends).max(first)..batch.num_rows() {
            tail.push_back(object(&schema, cell::row(&batch, row, room)));
        }
        tail.drain(..tail.len().saturating_sub(ends));
    }
    Ok(Survey {
        schema,
        rows,
        head,
        tail: tail.into(),
    })
}

fn object(schema: &Schema, row: Vec<Value>) -> Value {
    let names = schema.fields().iter().map(|field| field.name().clone());
    names.zip(row).collect::<Map<_, _>>().into()
}

/// Writes the tables of a stream that was checked as Parquet; the inner error says why there is no such form.
pub(crate) fn stream_to_parquet(
    blob: &Blob,
    rows: u64,
    limits: &DecodingLimits,
) -> Result<Result<File, String>, OutputError> {
    let mut writer = None;
    let mut refused = None;
    let each = |schema: &SchemaRef, batch: RecordBatch| {
        if writer.is_none() && refused.is_none() {
            let types = schema.fields().iter().map(|it| it.data_type().to_string());
            match begin(schema, types, rows)? {
                Ok(begun) => writer = Some(begun),
                Err(why) => refused = Some(why),
            }
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
        Ok(batch)
    };
    let read = survey(blob, limits, 0, each)?;
    match (writer, refused) {
        (Some(writer), _) => Ok(Ok(writer.finish()?)),
        (None, Some(why)) => Ok(Err(why)),
        // There was no batch.
        (None, None) => {
            let types = read.schema.fields().iter().map(|it| it.data_type().to_string());
            batches_to_parquet(&read.schema, types, 0, std::iter::empty())
        }
    }
}

/// Writes batches as Parquet. `types` are the columns' types as they are described.
pub(crate) fn batches_to_parquet(
    schema: &SchemaRef,
    types: impl Iterator<Item = String>,
    rows: u64,
    batches: impl Iterator<Item = Result<RecordBatch, OutputError>>,
) -> Result<Result<File, String>, OutputError> {
    let mut writer = match begin(schema, types, rows)? {
        Ok(writer) => writer,
        Err(why) => return Ok(Err(why)),
    };
    for batch in batches {
        writer.write(&batch?)?;
    }
    Ok(Ok(writer.finish()?))
}

fn begin(
    schema: &SchemaRef,
    types: impl Iterator<Item = String>,
    rows: u64,
) -> Result<Result<Writer, String>, OutputError> {
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns = names
        .zip(types)
        .map(|(name, dtype)| protocol::Column { name, dtype });
    let announced = protocol::Dataframe {
        name: None,
        library: DataframeLibrary::Pyarrow,
        rows,
        columns: columns.collect(),
        index: Vec::new(),
        truncated: false,
        head_rows: 0,
        tail_rows: 0,
        series: false,
    };
    Writer::new(&announced, schema)
}
