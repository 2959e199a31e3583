//! The dataset of an answer: all data that it is based on, in one document.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, copy};

use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind, Origin, Urls};
use cellblock_protocol::InputFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::content::{Content, Part};
use super::error::AliasError;
use super::splice::Copies;
use super::store::AliasStore;

/// Number of digits of the sha256 in a dataset's id.
const ID_DIGITS: usize = 16;

/// Location of the data behind an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanonicalDataset {
    /// Short name derived from the content: equal data has the same name.
    pub dataset_id: String,
    /// The sha256 of the document.
    pub sha256: ArtifactId,
    /// Size of the document in bytes.
    pub bytes: u64,
    /// URL of the bytes.
    pub url: String,
    /// Rows of the result if it is a list, otherwise of the only alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Results in the dataset, in the order of their recording.
    pub aliases: Vec<String>,
}

impl AliasStore {
    /// Stores `{"aliases": {"<alias>": <value>, …}, "result": <value>}` with each value's bytes as
    /// they were recorded; `result` only if there is one.
    ///
    /// A table is represented by its artifact: `{"format", "sha256", "bytes", "rows", "url"}`. The
    /// document is kept as long as this store; to keep it longer, pin it and the tables that it
    /// names.
    pub async fn canonical_dataset<A: AsRef<str>>(
        &self,
        aliases: &[A],
        result: Option<&Value>,
        urls: &Urls,
    ) -> Result<CanonicalDataset, AliasError> {
        let mut wanted = BTreeSet::new();
        for alias in aliases {
            wanted.insert(self.entry(alias.as_ref())?.alias.clone());
        }
        let entries: Vec<_> = self
            .entries()
            .into_iter()
            .filter(|entry| wanted.contains(&entry.alias))
            .collect();
        let mut copies = Copies::default();
        let mut parts = Vec::with_capacity(2 * entries.len() + 2);
        let mut before = "{\"aliases\": {";
        for entry in &entries {
            parts.push(Part::text(format!("{before}{}: ", json!(entry.alias))));
            before = ",\n";
            parts.push(if entry.format == InputFormat::Value {
                copies.part(self, entry).await?
            } else {
                let url = urls.of(entry.sha256, entry.media_type());
                let table = json!({
                    "format": entry.format, "sha256": entry.sha256, "bytes": entry.bytes,
                    "rows": entry.rows(), "url": url,
                });
                Part::text(table.to_string())
            });
        }
        let start = if entries.is_empty() { before } else { "" };
        let end = match result {
            Some(result) => format!("{start}}},\n\"result\": {result}}}\n"),
            None => format!("{start}}}}}\n"),
        };
        parts.push(Part::text(end));
        let content = Content::new(parts);
        let bytes = content.len();
        let file = spawn_blocking(move || spool(content)).await;
        let file = file.expect("copying does not panic").map_err(AliasError::File)?;
        let about = ArtifactDescription {
            kind: Kind::Dataset,
            media_type: "application/json".to_owned(),
            origin: Some(Origin {
                session: self.inner.owner.clone(),
                inputs: entries.iter().map(|entry| entry.sha256).collect(),
                ..Origin::default()
            }),
        };
        let sha256 = self.inner.store.put_file(file, &about).await?;
        self.inner.store.pin(&self.inner.owner, [sha256]).await?;
        let rows = match (result, entries.as_slice()) {
            (Some(Value::Array(rows)), _) => Some(rows.len() as u64),
            (None, [only]) => only.rows(),
            _ => None,
        };
        Ok(CanonicalDataset {
            dataset_id: format!("dataset_{}", &sha256.to_string()[..ID_DIGITS]),
            sha256,
            bytes,
            url: urls.of(sha256, "application/json"),
            rows,
            aliases: entries.iter().map(|entry| entry.alias.clone()).collect(),
        })
    }
}

fn spool(mut content: Content) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    copy(&mut content, &mut file)?;
    file.rewind()?;
    Ok(file)
}
