//! Entry of a file, as a sandbox reports it. It is an allegation: whatever it is, it has this shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::connect::{Fault, RpcResult};

/// A file, directory or link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvdEntry {
    pub(super) name: String,
    #[serde(rename = "type")]
    kind: EnvdFileType,
    pub(super) path: String,
    size: String,
    mode: u32,
    permissions: String,
    owner: String,
    group: String,
    modified_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(clippy::enum_variant_names, reason = "they are written so")]
enum EnvdFileType {
    FileTypeFile,
    FileTypeDirectory,
    FileTypeSymlink,
}

/// A change in a directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) name: String,
    #[serde(rename = "type")]
    kind: ChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<EnvdEntry>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(clippy::enum_variant_names, reason = "they are written so")]
enum ChangeKind {
    EventTypeCreate,
    EventTypeWrite,
    EventTypeRemove,
    EventTypeRename,
    EventTypeChmod,
}

impl Change {
    /// Whether the entry may still be there.
    pub(super) fn is_there(&self) -> bool {
        !matches!(
            self.kind,
            ChangeKind::EventTypeRemove | ChangeKind::EventTypeRename
        )
    }
}

/// Reads what the sandbox said.
pub(super) fn read<T: serde::de::DeserializeOwned>(said: &mut Value, name: &str) -> RpcResult<T> {
    let value = said.get_mut(name).map(Value::take).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        Fault::new(
            "internal",
            format!("the sandbox's answer has no valid `{name}`: {error}"),
        )
    })
}
