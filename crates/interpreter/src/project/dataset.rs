//! Description of a dataset.

use std::collections::BTreeSet;

use arrow_array::RecordBatchReader;
use cellblock_artifact::{ArtifactId, Store};
use cellblock_protocol::{Column, DataframeLibrary};
use chrono::{DateTime, SecondsFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::page;

/// A published dataset and its current version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedDataset {
    /// Name by which code loads it.
    pub slug: String,
    /// Title for people.
    pub title: String,
    /// Description of its contents.
    pub description: String,
    /// Words by which it is found.
    pub tags: Vec<String>,
    /// Remarks, such as on sources and gaps.
    pub notes: Vec<String>,
    /// Time of its first version, in milliseconds since 1970 (UTC).
    pub created_unix_ms: u64,
    /// Number of its versions.
    pub versions: u64,
    /// Its current version.
    pub current: DatasetVersion,
}

/// A version of a dataset. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetVersion {
    /// The sha256 of its Parquet file, by which the artifact store has it.
    pub sha256: ArtifactId,
    /// The sha256 of its columns and values, equal for equal data in files of different writers.
    pub data_sha256: String,
    /// Size of the Parquet file in bytes.
    pub bytes: u64,
    /// Time of its publication, in milliseconds since 1970 (UTC).
    pub published_unix_ms: u64,
    /// Number of rows.
    pub rows: u64,
    /// Columns and their types, those of the index first.
    pub columns: Vec<Column>,
    /// Names of the columns that are the index.
    pub index: Vec<String>,
    /// Library of the data frame.
    pub library: DataframeLibrary,
    /// Session that published it.
    pub session: String,
    /// Variable that was published, if it had a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Producer of the cell that published it, such as `notebooks/analysis.py`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// Calls of connectors whose answers it is made from.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fetches: BTreeSet<String>,
    /// Datasets that it is made from, as `slug@sha256`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub loads: BTreeSet<String>,
    /// Whether the variable was changed by a cell without a producer after the one that made it.
    #[serde(default)]
    pub rebound_by_scratch: bool,
    /// Identity of what is published: the sha256 of producer, variable and sources. It stays the
    /// same when only the data change.
    pub logical_id: ArtifactId,
}

impl DatasetVersion {
    /// Returns the time of its publication as RFC 3339.
    pub fn published_at(&self) -> String {
        let time = i64::try_from(self.published_unix_ms).ok();
        time.and_then(DateTime::from_timestamp_millis)
            .map_or_else(String::new, |time| {
                time.to_rfc3339_opts(SecondsFormat::Secs, true)
            })
    }

    /// Opens the table as Arrow batches. Its bytes are checked first.
    pub async fn open(&self, store: &Store) -> Result<impl RecordBatchReader + use<>> {
        page::open(store, self.sha256).await
    }
}
