//! Arrow IPC streams of connectors: their errors, and removing secrets from them.

use std::io::{BufWriter, Seek as _, SeekFrom};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, StringArray};
use arrow_data::ArrayData;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cellblock_protocol::Blob;

use super::sample::COLUMNS;
use super::{ConnectorError, ConnectorErrorKind, Redaction};
use crate::output::table::fetched::survey;
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

/// Returns the names of the columns, as far as they are listed.
pub(super) fn columns(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter().take(COLUMNS);
    fields.map(|field| field.name().clone()).collect()
}

/// Returns the stream without secrets: in names, and in columns of text. A stream with a secret elsewhere is rejected.
pub(super) fn redacted(
    stream: &Blob,
    redaction: &Redaction,
    limits: &DecodingLimits,
) -> Result<Blob, ConnectorError> {
    let mut clean = None;
    let mut hidden = false;
    let each = |schema: &SchemaRef, batch: RecordBatch| {
        let (schema, writer) = match &mut clean {
            Some(writer) => writer,
            None => clean.insert(begin(schema, redaction)?),
        };
        let columns: Vec<ArrayRef> = batch.columns().iter().map(|it| text(it, redaction)).collect();
        hidden |= columns.iter().any(|column| repeats(&column.to_data(), redaction));
        writer.write(&RecordBatch::try_new(Arc::clone(schema), columns)?)?;
        Ok(batch)
    };
    let refused = |error| malformed(&error).redacted(redaction);
    let read = survey(stream, limits, 0, each).map_err(refused)?;
    if hidden {
        let message =
            "the answer is withheld: it repeats a secret of the connector in a column that is not text";
        return Err(ConnectorError::new(ConnectorErrorKind::Parse, message));
    }
    let writer = match clean {
        Some(writer) => Ok(writer),
        None => begin(&read.schema, redaction),
    };
    writer.and_then(finish).map_err(refused)
}

type Writer = (SchemaRef, StreamWriter<BufWriter<std::fs::File>>);

fn begin(schema: &SchemaRef, redaction: &Redaction) -> Result<Writer, OutputError> {
    let fields = schema.fields().iter().map(|field| named(field, redaction));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let file = BufWriter::new(tempfile::tempfile()?);
    let writer = StreamWriter::try_new(file, &schema)?;
    Ok((schema, writer))
}

fn named(field: &Field, redaction: &Redaction) -> Field {
    let name = redaction.text(field.name()).into_owned();
    Field::new(name, field.data_type().clone(), field.is_nullable())
}

fn finish((_, writer): Writer) -> Result<Blob, OutputError> {
    let mut file = writer
        .into_inner()?
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    let length = file.seek(SeekFrom::End(0))?;
    Ok(Blob::File(file, length))
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
