//! Tables that connectors return, as Parquet: Arrow IPC streams, and records as columns.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cellblock_protocol::{self as protocol, Blob, DataframeLibrary};

use super::parquet::Writer;
use super::stream::Batches;
use crate::output::{DecodingLimits, OutputError};

/// Writes the table of a stream as Parquet; the inner error says why there is no such form. Without
/// `types`, the columns are described by those of Arrow.
pub(crate) fn stream_to_parquet<W: Write + Send>(
    blob: &Blob,
    types: Option<impl Iterator<Item = String>>,
    rows: u64,
    limits: &DecodingLimits,
    into: W,
) -> Result<Result<W, String>, OutputError> {
    let batches = match Batches::open(blob, limits)? {
        Ok(batches) => batches,
        Err(why) => return Ok(Err(why)),
    };
    let schema = SchemaRef::clone(&batches.schema);
    if let Some(types) = types {
        return batches_to_parquet(&schema, types, rows, batches, into);
    }
    let types = schema.fields().iter().map(|it| it.data_type().to_string());
    batches_to_parquet(&schema, types, rows, batches, into)
}

/// Writes batches as Parquet. `types` are the columns' types as they are described.
pub(crate) fn batches_to_parquet<W: Write + Send>(
    schema: &SchemaRef,
    types: impl Iterator<Item = String>,
    rows: u64,
    batches: impl Iterator<Item = Result<RecordBatch, OutputError>>,
    into: W,
) -> Result<Result<W, String>, OutputError> {
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
    let mut writer = match Writer::new(into, &announced, schema, None) {
        Ok(writer) => writer,
        Err(why) => return Ok(Err(why)),
    };
    for batch in batches {
        match writer.storable(&batch?) {
            Ok(stored) => writer.write(&stored)?,
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(writer.finish()?))
}
