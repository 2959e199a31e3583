//! Tables of published datasets, as Parquet.

use std::io::Write;
use std::sync::Arc;

use cellblock_protocol::{self as protocol, Blob};

use super::compare;
use super::digest::TableDigest;
use super::parquet::Writer;
use super::stream::Batches;
use crate::output::{DecodingLimits, OutputError};

/// A table that was written.
#[derive(Debug)]
pub(crate) struct WrittenTable<W> {
    pub(crate) file: W,
    /// Hash of its columns and values.
    pub(crate) data_sha256: String,
}

/// Writes a table whole, with what restores the frame of a library; the inner error says why it has
/// no such form.
pub(crate) fn to_parquet<W: Write + Send>(
    announced: &protocol::Dataframe,
    frame: &str,
    blob: &Blob,
    limits: &DecodingLimits,
    into: W,
) -> Result<Result<WrittenTable<W>, String>, OutputError> {
    let mut batches = match Batches::open(blob, limits)? {
        Ok(batches) => batches,
        Err(why) => return Ok(Err(why)),
    };
    let schema = Arc::clone(&batches.schema);
    compare(announced, &schema)?;
    let mut writer = match Writer::new(into, announced, &schema, Some(frame)) {
        Ok(writer) => writer,
        Err(why) => return Ok(Err(why)),
    };
    let mut digest = TableDigest::new(&schema);
    while let Some(batch) = batches.next().transpose()? {
        digest.take(&batch);
        match writer.storable(&batch) {
            Ok(stored) => writer.write(&stored)?,
            Err(why) => return Ok(Err(why)),
        }
    }
    if batches.rows != announced.rows {
        return Err(OutputError::table(format!(
            "it has {} rows, {} were announced",
            batches.rows, announced.rows
        )));
    }
    Ok(Ok(WrittenTable {
        file: writer.finish()?,
        data_sha256: digest.finish(),
    }))
}
