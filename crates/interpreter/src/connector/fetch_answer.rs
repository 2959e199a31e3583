//! What a function of a connector returns.

use cellblock_protocol::Blob;
use serde_json::Value;

/// An answer of a connector.
#[derive(Debug)]
pub enum FetchAnswer {
    /// A JSON value, which code gets as Python's own types.
    Value(Value),
    /// A table as an Arrow IPC stream, which code gets as a data frame. Batches have at most 1,048,576 rows and 256 MiB, are not
    /// compressed, and have no dictionaries, views, unions, intervals or run ends.
    Arrow(Blob),
}

impl From<Value> for FetchAnswer {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}
