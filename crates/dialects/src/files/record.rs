//! Files as the program in a sandbox describes them. Whatever it says, it has this shape.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

/// A file, directory or link. A link is described as the file that it leads to.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    /// Path that a link leads to.
    pub(crate) target: Option<String>,
    pub(crate) size: u64,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Kind and permissions in the form of `ls -l`.
    pub(crate) permissions: String,
    pub(crate) owner: String,
    pub(crate) group: String,
    /// Time of the last change of the content, in nanoseconds since 1970.
    modified: i64,
    /// Time of the last change of the content or the permissions.
    changed: i64,
    /// Whether programs of the sandbox can write it.
    pub(crate) writable: bool,
    /// Attributes that clients have set, by their names.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Path without links, and media type, if they were requested.
    pub(crate) real: Option<String>,
    pub(crate) media_type: Option<String>,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKind {
    Directory,
    File,
    /// A link that leads nowhere.
    Symlink,
    #[serde(other)]
    Other,
}

/// Some of the files below a directory.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordList {
    pub(crate) directory: FileRecord,
    pub(crate) entries: Vec<FileRecord>,
    /// Number of all entries; that of a search is larger than its limit if there are more.
    pub(crate) total: u64,
}

impl FileRecord {
    pub(crate) fn name(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { "/" } else { name }
    }

    pub(crate) const fn modified(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.modified)
    }

    pub(crate) const fn changed(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.changed)
    }

    /// Returns some fields in the form that file browsers read.
    pub(crate) fn fields(&self, names: &[&str]) -> Value {
        let is_directory = self.kind == FileKind::Directory;
        let modified = Duration::from_nanos(self.modified.max(0).cast_unsigned());
        let all = json!({
            "name": self.name(), "path": self.path, "size": self.size, "writable": self.writable,
            "type": if is_directory { "directory" } else { "file" }, "modified": modified.as_secs_f64(),
            "media_type": self.media_type,
        });
        let field = |name: &&str| ((*name).to_owned(), all[*name].clone());
        Value::Object(names.iter().map(field).collect())
    }
}
