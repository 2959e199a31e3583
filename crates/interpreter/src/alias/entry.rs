//! What is known of a recorded result besides its bytes.

use std::time::{SystemTime, UNIX_EPOCH};

use cellblock_artifact::ArtifactId;
use cellblock_protocol::InputFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::Shape;

/// Bytes of JSON that are kept beside the shape.
pub(super) const WHOLE: u64 = 2048;

/// A recorded result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its name.
    pub alias: String,
    /// The tool that it is from.
    pub tool: String,
    /// `value` for JSON; `arrow` or `parquet` for a table.
    pub format: InputFormat,
    /// Size in bytes.
    pub bytes: u64,
    /// Its bytes in the artifact store.
    pub sha256: ArtifactId,
    /// When it was recorded, in milliseconds since 1970.
    pub recorded_unix_ms: u64,
    /// What it looks like.
    pub shape: Shape,
    /// All of it, if it is JSON of at most 2 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

impl Entry {
    /// Its media type.
    pub const fn media_type(&self) -> &'static str {
        media_type(self.format)
    }

    /// Whether it is a table in a file of its own, rather than JSON.
    pub fn is_table(&self) -> bool {
        self.format != InputFormat::Value
    }

    /// Its rows, if it is a table.
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

pub(super) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
