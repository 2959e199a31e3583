//! What a function of a connector returns.

use arrow_ipc::writer::StreamWriter;
use cellblock_protocol::Blob;
use serde_json::Value;

use super::records::RecordColumns;
use super::{ConnectorError, ConnectorErrorKind};
use crate::output::{DecodingLimits, OutputError};

/// An answer of a connector.
#[derive(Debug)]
pub enum FetchAnswer {
    /// A JSON value, which code gets as Python's own types.
    Value(Value),
    /// A table as an Arrow IPC stream, which code gets as a data frame. Batches have at most 1,048,576 rows and 256 MiB, are not
    /// compressed, and have no dictionaries, views, unions, intervals or run ends.
    Arrow(Blob),
}

impl FetchAnswer {
    /// Makes a table of records, which are objects. A column whose values have no type in common has them as JSON text.
    pub fn records(rows: &[Value]) -> Result<Self, ConnectorError> {
        let parse = |text: String| ConnectorError::new(ConnectorErrorKind::Parse, text);
        let limits = DecodingLimits::default();
        let columns = RecordColumns::of(rows, &limits)
            .map_err(|why| parse(format!("the rows cannot be a table: {why}")))?;
        let written = (|| {
            let schema = columns.schema();
            let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
            for batch in columns.batches(&schema, rows) {
                writer.write(&batch?)?;
            }
            Ok::<_, OutputError>(writer.into_inner()?)
        })();
        let stream = written.map_err(|error| parse(format!("the rows cannot be a table: {error}")))?;
        Ok(Self::Arrow(stream.into()))
    }
}

impl From<Value> for FetchAnswer {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}
