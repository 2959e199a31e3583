//! An answer of a connector, as it is kept and sent.

use std::io::Write;
use std::iter::Empty;

use cellblock_protocol::Blob;
use serde_json::{Map, Value, json};

use super::log::now;
use super::records::{RecordColumns, records};
use super::row_stream::each_row;
use super::sample::{Rows, RowsSample};
use super::schema::DeclaredSchema;
use super::store::TableStorage;
use super::{BlobWriter, ConnectorError, ConnectorErrorKind, FetchAnswer, ListPlace, Redaction, arrow};
use crate::output::DecodingLimits;
use crate::output::table::fetched::{batches_to_parquet, stream_to_parquet};

/// An answer without secrets.
#[derive(Debug)]
pub(super) struct StoredAnswer {
    pub(super) form: AnswerForm,
    pub(super) bytes: Blob,
    pub(super) fetched_at: String,
    pub(super) rows: Rows,
    /// The answer's way into the artifact store, if it is a table.
    pub(super) storing: Option<TableStorage>,
}

/// Form of an answer's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Json,
    /// An Arrow IPC stream.
    Arrow,
}

impl AnswerForm {
    /// Returns its name in the protocol.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Arrow => "arrow",
        }
    }
}

/// A table that is not stored yet.
#[derive(Debug)]
pub(super) enum UnstoredTable {
    /// A JSON answer with records.
    Records(Value),
    /// A JSON list of records in a file, and their number.
    List(Blob, u64),
    /// An Arrow IPC stream.
    Stream(Blob, u64),
}

impl StoredAnswer {
    /// Removes the secrets from an answer and checks its type. Returns the table that it is, too.
    pub(super) fn new(
        answer: FetchAnswer,
        returns: Option<&DeclaredSchema>,
        redaction: &Redaction,
        limits: &DecodingLimits,
    ) -> Result<(Self, Option<UnstoredTable>), ConnectorError> {
        match answer {
            FetchAnswer::Value(value) | FetchAnswer::LargeValue(value, _) => {
                Self::of_value(value, returns, redaction)
            }
            FetchAnswer::Unread(unread) => {
                // What is checked against a schema is needed as a whole.
                if returns.is_none()
                    && let Some(list) = unread.list
                    && let Ok(listed) = Self::of_list(&unread.bytes, list, redaction)
                {
                    return Ok(listed);
                }
                let answer = unread.read().map_err(|error| error.redacted(redaction))?;
                Self::new(answer, returns, redaction, limits)
            }
            FetchAnswer::Arrow(stream) => Self::of_stream(stream, redaction, limits),
        }
    }

    fn of_value(
        mut value: Value,
        returns: Option<&DeclaredSchema>,
        redaction: &Redaction,
    ) -> Result<(Self, Option<UnstoredTable>), ConnectorError> {
        let fetched_at = now();
        if let Some(schema) = returns {
            schema.check(&value).map_err(|mistakes| {
                let message =
                    format!("the answer does not match the schema that the function declares: {mistakes}");
                ConnectorError::new(ConnectorErrorKind::Parse, message).redacted(redaction)
            })?;
        }
        redaction.value(&mut value);
        let rows = Rows::of(&value);
        let mut json = BlobWriter::default();
        let written = serde_json::to_writer(&mut json, &value).map_err(std::io::Error::from);
        let json = written.and_then(|()| json.finish());
        // A table without columns has no Parquet form.
        let table = (!rows.columns.is_empty()).then_some(UnstoredTable::Records(value));
        let answer = Self {
            form: AnswerForm::Json,
            bytes: json.map_err(|error| not_kept(&error))?,
            fetched_at,
            rows,
            storing: None,
        };
        Ok((answer, table))
    }

    /// Reads a large list item by item; the error says why it is none.
    fn of_list(
        document: &Blob,
        list: ListPlace,
        redaction: &Redaction,
    ) -> Result<(Self, Option<UnstoredTable>), String> {
        let key = match list {
            ListPlace::Document => None,
            ListPlace::Key(key) => Some(key),
        };
        let fetched_at = now();
        let kept = |error: std::io::Error| error.to_string();
        let (mut json, mut sample, mut before) = (BlobWriter::default(), RowsSample::default(), "[");
        each_row(document, key, |mut item| {
            redaction.value(&mut item);
            sample.add(&item);
            json.write_all(before.as_bytes()).map_err(kept)?;
            before = ",";
            serde_json::to_writer(&mut json, &item).map_err(|error| error.to_string())
        })?;
        let end = if before == "[" { "[]" } else { "]" };
        json.write_all(end.as_bytes()).map_err(kept)?;
        let answer = Self {
            form: AnswerForm::Json,
            bytes: json.finish().map_err(kept)?,
            fetched_at,
            rows: sample.finish(),
            storing: None,
        };
        let copy = answer.copy().map_err(kept)?;
        let count = answer.rows.count.unwrap_or_default();
        let table = (!answer.rows.columns.is_empty()).then_some(UnstoredTable::List(copy, count));
        Ok((answer, table))
    }

    fn of_stream(
        stream: Blob,
        redaction: &Redaction,
        limits: &DecodingLimits,
    ) -> Result<(Self, Option<UnstoredTable>), ConnectorError> {
        let fetched_at = now();
        let (stream, rows) = if redaction.is_empty() {
            let rows = arrow::survey(&stream, limits).map_err(|error| arrow::malformed(&error))?;
            (stream, rows)
        } else {
            arrow::redacted(&stream, redaction, limits)?
        };
        let bytes = match stream {
            Blob::Memory(bytes) => BlobWriter::written(bytes),
            file @ Blob::File(..) => Ok(file),
        };
        let answer = Self {
            form: AnswerForm::Arrow,
            bytes: bytes.map_err(|error| not_kept(&error))?,
            fetched_at,
            rows,
            storing: None,
        };
        let copy = answer.copy().map_err(|error| not_kept(&error))?;
        let count = answer.rows.count.unwrap_or_default();
        let table = (!answer.rows.columns.is_empty()).then_some(UnstoredTable::Stream(copy, count));
        Ok((answer, table))
    }

    /// Returns what a record of the answer says, for code. Waits until its table is stored.
    pub(super) async fn envelope(&self) -> Map<String, Value> {
        let (artifact, note) = match &self.storing {
            Some(storing) => match storing.ended().await {
                Ok(artifact) => (Some(artifact), None),
                Err(why) => (None, Some(why)),
            },
            None => (None, None),
        };
        let envelope = json!({
            "row_count": self.rows.count,
            "columns": self.rows.columns,
            "artifact": artifact,
            "note": note,
        });
        match envelope {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Returns a copy to send.
    pub(super) fn copy(&self) -> std::io::Result<Blob> {
        Ok(match &self.bytes {
            Blob::Memory(bytes) => Blob::Memory(bytes.clone()),
            Blob::File(file, length) => Blob::File(file.try_clone()?, *length),
        })
    }
}

impl UnstoredTable {
    /// Writes the table as Parquet; the error says why it has no such form.
    pub(super) fn to_parquet<W: Write + Send>(&self, limits: &DecodingLimits, into: W) -> Result<W, String> {
        let written = match self {
            Self::Records(answer) => {
                let rows = records(answer).unwrap_or_default();
                let columns = RecordColumns::of(rows, limits)?;
                let schema = columns.schema();
                let batches = columns.batches(&schema, rows);
                batches_to_parquet(&schema, columns.types(), rows.len() as u64, batches, into)
            }
            Self::List(document, rows) => {
                let (columns, stream) = RecordColumns::stream_of(document, None, limits)?;
                stream_to_parquet(&stream, Some(columns.types()), *rows, limits, into)
            }
            Self::Stream(blob, rows) => stream_to_parquet(blob, None::<Empty<String>>, *rows, limits, into),
        };
        written.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not write a fetched table"
            );
            Err("the host could not write it; its operator's log has the reason".to_owned())
        })
    }
}

fn not_kept(error: &std::io::Error) -> ConnectorError {
    tracing::warn!(%error, "could not keep the answer of a connector");
    let message = "the host could not keep the answer; its operator's log has the reason";
    ConnectorError::new(ConnectorErrorKind::Provider { status: None }, message)
}
