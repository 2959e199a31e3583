//! Several results as one JSON document, generated while it is read.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use cellblock_artifact::ArtifactId;
use cellblock_protocol::InputFormat;
use serde_json::json;

use super::content::{Content, Part};
use super::entry::Entry;
use super::error::{AliasError, NameFault};
use super::store::AliasStore;

/// Directory in a sandbox of the tables that a document names.
const TABLES: &str = "/tmp/data";

/// A JSON object with one value per name, and the positions of the values.
#[derive(Debug)]
pub struct Splice {
    /// The document.
    pub content: Content,
    /// Values, in the order of the names.
    pub spans: Vec<Span>,
}

/// Position of a value in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its key.
    pub name: String,
    /// Alias of the result.
    pub alias: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Size in bytes.
    pub length: u64,
    /// Location of a table, which the document only references.
    pub table: Option<TableFile>,
}

/// A table that must be in the sandbox along with the document; [`AliasStore::content`] returns its
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// Arrow or Parquet.
    pub format: InputFormat,
    /// Path in the sandbox.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl Entry {
    /// Returns the location of a table in a sandbox; nothing for JSON.
    pub fn table_file(&self) -> Option<TableFile> {
        let extension = match self.format {
            InputFormat::Parquet => "parquet",
            InputFormat::Arrow => "arrow",
            _ => return None,
        };
        Some(TableFile {
            format: self.format,
            path: format!("{TABLES}/{}.{extension}", self.alias),
            bytes: self.bytes,
        })
    }
}

impl AliasStore {
    /// Returns a result's recorded bytes.
    pub async fn content(&self, alias: &str) -> Result<Content, AliasError> {
        let entry = self.entry(alias)?;
        let mut copies = Copies::default();
        Ok(Content::new([copies.part(self, &entry).await?]))
    }

    /// Returns `{"<name>": <value>, …}` with the recorded bytes of the values, for pairs of a name
    /// and an alias.
    ///
    /// A result under several names is included several times. Results in a folder of this machine
    /// are read from there; those of other stores are first copied to one temporary file.
    pub async fn splice<N: AsRef<str>, A: AsRef<str>>(&self, names: &[(N, A)]) -> Result<Splice, AliasError> {
        let mut seen = HashSet::new();
        let mut entries = Vec::with_capacity(names.len());
        for (name, alias) in names {
            if !seen.insert(name.as_ref()) {
                return Err(AliasError::name(name.as_ref(), NameFault::Twice));
            }
            entries.push((name.as_ref(), self.entry(alias.as_ref())?));
        }
        self.splice_entries(&entries).await
    }

    pub(super) async fn splice_entries(&self, entries: &[(&str, Arc<Entry>)]) -> Result<Splice, AliasError> {
        let mut copies = Copies::default();
        let mut parts = Vec::with_capacity(2 * entries.len() + 1);
        let mut spans = Vec::with_capacity(entries.len());
        let (mut before, mut offset) = ("{", 0);
        for (name, entry) in entries {
            let key = Part::text(format!("{before}{}: ", json!(name)));
            before = ",\n";
            let table = entry.table_file();
            let value = match &table {
                Some(table) => Part::text(
                    json!({"format": table.format, "path": table.path, "rows": entry.rows()}).to_string(),
                ),
                None => copies.part(self, entry).await?,
            };
            spans.push(Span {
                name: (*name).to_owned(),
                alias: entry.alias.clone(),
                offset: offset + key.len(),
                length: value.len(),
                table,
            });
            offset += key.len() + value.len();
            parts.extend([key, value]);
        }
        parts.push(Part::text(if entries.is_empty() { "{}\n" } else { "}\n" }));
        Ok(Splice {
            content: Content::new(parts),
            spans,
        })
    }
}

/// Results that were copied from a remote store, in one unlinked file.
#[derive(Debug, Default)]
pub(super) struct Copies {
    file: Option<Arc<File>>,
    length: u64,
    places: HashMap<ArtifactId, u64>,
}

impl Copies {
    /// Returns a result's bytes.
    pub(super) async fn part(&mut self, from: &AliasStore, entry: &Entry) -> Result<Part, AliasError> {
        let id = entry.sha256;
        if let Some(path) = from.inner.store.local_path(id) {
            return Ok(Part::Folder {
                path,
                id,
                length: entry.bytes,
            });
        }
        let file = if let Some(file) = &self.file {
            Arc::clone(file)
        } else {
            let file = Arc::new(tempfile::tempfile().map_err(AliasError::File)?);
            self.file = Some(Arc::clone(&file));
            file
        };
        let at = if let Some(at) = self.places.get(&id) {
            *at
        } else {
            let at = self.length;
            let mut reader = from.inner.store.reader(id).await?;
            while let Some(piece) = reader.next().await? {
                (&*file).write_all(&piece).map_err(AliasError::File)?;
                self.length += piece.len() as u64;
            }
            self.places.insert(id, at);
            at
        };
        Ok(Part::Copy {
            file,
            at,
            left: entry.bytes,
        })
    }
}
