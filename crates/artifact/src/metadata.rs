//! Metadata and origins of an artifact.

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
    /// Data on which a response is based.
    Dataset,
    /// Result of a tool or a cell, as JSON or a table.
    Result,
}

/// A publisher's description of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactDescription {
    /// Kind of the artifact.
    pub kind: Kind,
    /// Media type.
    pub media_type: String,
    /// Origin of the bytes: their maker and its input, if known.
    pub origin: Option<Origin>,
}

/// Maker of an artifact, and what it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Id of the session, as its interface names it.
    pub session: String,
    /// Number of the cell in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u64>,
    /// Name in the session: a variable, a figure or a file; of fetched data, the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Artifacts from which it was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ArtifactId>,
}

/// A store's metadata of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// Id of the artifact.
    pub sha256: ArtifactId,
    /// Kind at its first publication.
    pub kind: Kind,
    /// Media type at its first publication.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of its first publication, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Distinct origins, oldest first.
    #[serde(default)]
    pub origins: Vec<Origin>,
}
