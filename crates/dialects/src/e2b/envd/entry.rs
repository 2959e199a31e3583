//! Files and their changes as E2B's clients read them.

use chrono::SecondsFormat;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::{FileKind, FileRecord};

/// Describes a file, directory or link.
pub(super) fn entry(record: &FileRecord) -> Value {
    let mut entry = json!({
        "name": record.name(),
        "type": match record.kind {
            FileKind::Directory => "FILE_TYPE_DIRECTORY",
            FileKind::Symlink => "FILE_TYPE_SYMLINK",
            FileKind::File | FileKind::Other => "FILE_TYPE_FILE",
        },
        "path": record.path,
        "size": record.size.to_string(),
        "mode": record.mode,
        "permissions": record.permissions,
        "owner": record.owner,
        "group": record.group,
        "modifiedTime": record.modified().to_rfc3339_opts(SecondsFormat::Nanos, true),
    });
    if let Some(target) = &record.target {
        entry["symlinkTarget"] = target.as_str().into();
    }
    if !record.attributes.is_empty() {
        entry["metadata"] = json!(record.attributes);
    }
    entry
}

/// A change in a directory.
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    name: String,
    #[serde(rename = "type")]
    kind: ChangeKind,
    entry: Option<FileRecord>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChangeKind {
    Create,
    Write,
    Remove,
    Rename,
    Chmod,
}

impl Change {
    /// Describes it, with the file if that is requested.
    pub(super) fn describe(&self, with_entry: bool) -> Value {
        let kind = match self.kind {
            ChangeKind::Create => "EVENT_TYPE_CREATE",
            ChangeKind::Write => "EVENT_TYPE_WRITE",
            ChangeKind::Remove => "EVENT_TYPE_REMOVE",
            ChangeKind::Rename => "EVENT_TYPE_RENAME",
            ChangeKind::Chmod => "EVENT_TYPE_CHMOD",
        };
        let mut change = json!({"name": self.name, "type": kind});
        if let Some(record) = self.entry.as_ref().filter(|_| with_entry) {
            change["entry"] = entry(record);
        }
        change
    }
}
