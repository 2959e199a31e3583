//! What is known of an artifact besides its bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ArtifactId;

/// Kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A table.
    Dataframe,
    /// A chart: its image or its specification.
    Figure,
    /// A picture.
    Image,
    /// One of several representations of a value.
    Rich,
    /// A file that code wrote.
    File,
    /// A chart as data: its specification and rows.
    Chart,
    /// Data that an answer rests on.
    Dataset,
    /// Result of a tool or a cell, as JSON or a table.
    Result,
}

/// What a publisher says of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// What they are.
    pub kind: Kind,
    /// Their media type.
    pub media_type: String,
    /// Who made them from what, when that is known.
    pub origin: Option<Origin>,
}

/// Who made an artifact from what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The session.
    pub session: String,
    /// The cell in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u64>,
    /// What it was called there: a variable, a figure or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The artifacts that it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ArtifactId>,
}

/// What a store knows of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// Its name.
    pub sha256: ArtifactId,
    /// What it was when it was first published.
    pub kind: Kind,
    /// Its media type when it was first published.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// When it was first published, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Each distinct origin, oldest first.
    #[serde(default)]
    pub origins: Vec<Origin>,
}
