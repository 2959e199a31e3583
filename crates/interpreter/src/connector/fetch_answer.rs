//! Result of a connector's function.

use arrow_ipc::writer::StreamWriter;
use cellblock_protocol::Blob;
use serde_json::Value;

use super::records::RecordColumns;
use super::{BlobWriter, ConnectorError, ConnectorErrorKind, LARGE_ANSWER, LargeAnswer};
use crate::output::{DecodingLimits, OutputError};

/// An answer of a connector.
#[derive(Debug)]
pub enum FetchAnswer {
    /// A JSON value, which code gets as Python's own types.
    Value(Value),
    /// The same, if its text was large.
    LargeValue(Value, LargeAnswer),
    /// An answer that was received and is not read yet, because it is large.
    Unread(UnreadAnswer),
    /// A table as an Arrow IPC stream, which code gets as a data frame. Batches have at most
    /// 1,048,576 rows and 256 MiB, are not compressed, and have no dictionaries, views, unions,
    /// intervals or run ends.
    Arrow(Blob),
}

/// A large answer, and how it is read. A list in it is read item by item.
#[derive(Debug)]
pub struct UnreadAnswer {
    /// The bytes: a JSON document.
    pub bytes: Blob,
    /// Path at which the answer may be a list; `None` if it is none.
    pub list: Option<ListPlace>,
    /// Reads the bytes, which takes several times as much memory.
    pub read: fn(&Blob) -> Result<FetchAnswer, ConnectorError>,
}

/// Place of a list in a JSON document.
#[derive(Clone, Copy, Debug)]
pub enum ListPlace {
    /// The document itself.
    Document,
    /// The value of this key of the document's object.
    Key(&'static str),
}

impl UnreadAnswer {
    /// Reads it. The file is gone then.
    pub(super) fn read(self) -> Result<FetchAnswer, ConnectorError> {
        (self.read)(&self.bytes)
    }
}

impl FetchAnswer {
    /// Makes a table of records, which are objects. A column whose values have no type in common
    /// has them as JSON text.
    pub fn records(rows: &[Value]) -> Result<Self, ConnectorError> {
        let parse = |text: String| ConnectorError::new(ConnectorErrorKind::Parse, text);
        let limits = DecodingLimits::default();
        let columns = RecordColumns::of(rows, &limits)
            .map_err(|why| parse(format!("the rows cannot be a table: {why}")))?;
        let written = (|| {
            let schema = columns.schema();
            let mut writer = StreamWriter::try_new(BlobWriter::default(), &schema)?;
            for batch in columns.batches(&schema, rows) {
                writer.write(&batch?)?;
            }
            Ok::<_, OutputError>(writer.into_inner()?)
        })();
        let stream = written.map_err(|error| parse(format!("the rows cannot be a table: {error}")))?;
        let stream = stream
            .finish()
            .map_err(|error| parse(format!("the rows cannot be kept: {error}")))?;
        Ok(Self::Arrow(stream))
    }
}

impl FetchAnswer {
    /// Makes a table of the records in the list under a key of a JSON document, of which only some
    /// are in memory at a time.
    pub fn records_of(document: &Blob, key: &str) -> Result<Self, ConnectorError> {
        let made = RecordColumns::stream_of(document, Some(key), &DecodingLimits::default());
        let (_, stream) = made.map_err(|why| {
            let text = format!("the rows cannot be a table: {why}");
            ConnectorError::new(ConnectorErrorKind::Parse, text)
        })?;
        Ok(Self::Arrow(stream))
    }
}

impl FetchAnswer {
    /// Makes an answer of a value whose text was large if it has a place.
    pub fn of_value(value: Value, place: Option<LargeAnswer>) -> Self {
        match place {
            Some(place) => Self::LargeValue(value, place),
            None => Self::Value(value),
        }
    }

    /// Returns the answer, and the place of a large one once it may be in memory.
    pub(super) async fn placed(self) -> (Self, Option<LargeAnswer>) {
        match self {
            Self::LargeValue(value, place) => (Self::Value(value), Some(place)),
            Self::Unread(unread) => {
                let place = LargeAnswer::reserve(unread.bytes.len()).await;
                (Self::Unread(unread), Some(place))
            }
            Self::Arrow(stream) if stream.len() > LARGE_ANSWER as u64 => {
                let place = LargeAnswer::reserve(stream.len()).await;
                (Self::Arrow(stream), Some(place))
            }
            small => (small, None),
        }
    }
}

impl From<Value> for FetchAnswer {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}
