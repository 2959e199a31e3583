//! The metadata of a recorded result.

use cellblock_artifact::ArtifactId;
use cellblock_protocol::InputFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::Shape;

/// Maximum size in bytes of JSON that is kept in full next to its shape.
pub(super) const WHOLE: u64 = 2048;

/// A recorded result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Alias of the result.
    pub alias: String,
    /// Tool that returned it.
    pub tool: String,
    /// `value` for JSON; `arrow` or `parquet` for a table.
    pub format: InputFormat,
    /// Size in bytes.
    pub bytes: u64,
    /// Id of its bytes in the artifact store.
    pub sha256: ArtifactId,
    /// Time of recording, in milliseconds since 1970.
    pub recorded_unix_ms: u64,
    /// Shape of the value.
    pub shape: Shape,
    /// The whole value, if it is JSON of at most 2 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

impl Entry {
    /// Returns its media type.
    pub const fn media_type(&self) -> &'static str {
        media_type(self.format)
    }

    /// Returns whether it is a table in a separate file, rather than JSON.
    pub fn is_table(&self) -> bool {
        self.format != InputFormat::Value
    }

    /// Returns its number of rows, if it is a table.
    pub fn rows(&self) -> Option<u64> {
        (self.shape.kind == super::ShapeKind::Table)
            .then_some(self.shape.count)
            .flatten()
    }
}

pub(super) const fn media_type(format: InputFormat) -> &'static str {
    match format {
        InputFormat::Parquet => "application/vnd.apache.parquet",
        InputFormat::Arrow => "application/vnd.apache.arrow.stream",
        _ => "application/json",
    }
}
