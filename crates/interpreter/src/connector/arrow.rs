//! Arrow IPC streams of connectors: what records say of them, their errors, and removing secrets from them.

use std::io::{BufWriter, Seek as _, SeekFrom};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, StringArray};
use arrow_data::ArrayData;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use cellblock_protocol::Blob;
use serde_json::Value;

use super::sample::{COLUMNS, ROWS, Rows, sample};
use super::{ConnectorError, ConnectorErrorKind, Redaction};
use crate::output::table::stream::{Batches, Ends};
use crate::output::{DecodingLimits, OutputError};

/// Returns the error for an invalid stream.
pub(super) fn malformed(error: &OutputError) -> ConnectorError {
    let what = match error {
        OutputError::Table { what } => what.clone(),
        OutputError::Limit { what, limit, actual } => {
            format!("{what} of {actual} is over the limit of {limit}")
        }
        error => error.to_string(),
    };
    let message = format!("the answer is not a valid Arrow IPC stream: {what}");
    ConnectorError::new(ConnectorErrorKind::Parse, message)
}

/// Returns what a record says of a stream. Checks all of it.
pub(super) fn survey(stream: &Blob, limits: &DecodingLimits) -> Result<Rows, OutputError> {
    let mut batches = open(stream, limits)?;
    let mut ends = Ends::new(batches.schema.fields().len(), ROWS, ROWS);
    while let Some(batch) = batches.next().transpose()? {
        ends.take(&batch);
    }
    Ok(rows(&batches.schema, batches.rows, ends))
}

/// Returns the stream without secrets, in names and in columns of text, and what a record says of
/// it. A stream with a secret elsewhere is rejected.
pub(super) fn redacted(
    stream: &Blob,
    redaction: &Redaction,
    limits: &DecodingLimits,
) -> Result<(Blob, Rows), ConnectorError> {
    let clean = clean(stream, redaction, limits);
    clean
        .map_err(|error| malformed(&error).redacted(redaction))?
        .ok_or_else(|| {
            let message =
                "the answer is withheld: it repeats a secret of the connector in a column that is not text";
            ConnectorError::new(ConnectorErrorKind::Parse, message)
        })
}

/// Does so; nothing is returned of a stream with a secret that cannot be removed.
fn clean(
    stream: &Blob,
    redaction: &Redaction,
    limits: &DecodingLimits,
) -> Result<Option<(Blob, Rows)>, OutputError> {
    let mut batches = open(stream, limits)?;
    let fields = batches.schema.fields().iter();
    let fields: Vec<_> = fields.map(|field| named(field, redaction)).collect();
    let schema = Arc::new(Schema::new(fields));
    let mut writer = StreamWriter::try_new(BufWriter::new(tempfile::tempfile()?), &schema)?;
    let mut ends = Ends::new(schema.fields().len(), ROWS, ROWS);
    let mut hidden = false;
    while let Some(batch) = batches.next().transpose()? {
        let columns: Vec<ArrayRef> = batch.columns().iter().map(|it| text(it, redaction)).collect();
        hidden |= columns.iter().any(|column| repeats(&column.to_data(), redaction));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        ends.take(&batch);
        writer.write(&batch)?;
    }
    let mut file = writer
        .into_inner()?
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    let length = file.seek(SeekFrom::End(0))?;
    let rows = rows(&schema, batches.rows, ends);
    Ok((!hidden).then_some((Blob::File(file, length), rows)))
}

fn open<'a>(stream: &'a Blob, limits: &'a DecodingLimits) -> Result<Batches<'a>, OutputError> {
    Batches::open(stream, limits)?.map_err(OutputError::table)
}

fn rows(schema: &Schema, count: u64, ends: Ends) -> Rows {
    let names = || schema.fields().iter().map(|field| field.name().clone());
    let record = |row: Vec<Value>| sample(&names().zip(row).collect());
    Rows {
        count: Some(count),
        columns: names().take(COLUMNS).collect(),
        head: ends.head.into_iter().map(record).collect(),
        tail: ends.tail.into_iter().map(record).collect(),
    }
}

fn named(field: &Field, redaction: &Redaction) -> Field {
    let name = redaction.text(field.name()).into_owned();
    Field::new(name, field.data_type().clone(), field.is_nullable())
}

/// Returns a column of text without secrets, and any other unchanged.
fn text(column: &ArrayRef, redaction: &Redaction) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8 if repeats(&column.to_data(), redaction) => {
            let texts = column.as_string::<i32>().iter();
            let clean = texts.map(|text| text.map(|text| redaction.text(text).into_owned()));
            Arc::new(clean.collect::<StringArray>())
        }
        DataType::LargeUtf8 if repeats(&column.to_data(), redaction) => {
            let texts = column.as_string::<i64>().iter();
            let clean = texts.map(|text| text.map(|text| redaction.text(text).into_owned()));
            Arc::new(clean.collect::<LargeStringArray>())
        }
        _ => Arc::clone(column),
    }
}

/// Tells whether the texts or bytes of an array, or of an array inside it, have a secret.
fn repeats(data: &ArrayData, redaction: &Redaction) -> bool {
    let has = |bytes: &[u8]| redaction.is_in(&String::from_utf8_lossy(bytes));
    let names_it = match data.data_type() {
        DataType::Struct(fields) => fields.iter().any(|field| redaction.is_in(field.name())),
        _ => false,
    };
    let own = match data.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            data.buffers().get(1).is_some_and(|bytes| has(bytes))
        }
        DataType::FixedSizeBinary(_) => data.buffers().first().is_some_and(|bytes| has(bytes)),
        _ => false,
    };
    names_it || own || data.child_data().iter().any(|child| repeats(child, redaction))
}
