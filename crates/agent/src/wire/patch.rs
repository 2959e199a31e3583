//! Changes of the client's files: the calls of `apply_patch`, and their outputs.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::call_kind::CallKind;
use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, ItemStatus};

/// A change that the model makes to one of the client's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchCall {
    /// `ap_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id that its output refers to.
    pub call_id: String,
    /// The change.
    pub operation: PatchOperation,
}

/// A change of one file. Paths are relative to the client's workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PatchOperation {
    /// Creates a file.
    CreateFile {
        /// Path of the file.
        path: String,
        /// Its lines, each after `+`.
        diff: String,
    },
    /// Changes a file.
    UpdateFile {
        /// Path of the file.
        path: String,
        /// Sections of context, removed and added lines.
        diff: String,
    },
    /// Deletes a file.
    DeleteFile {
        /// Path of the file.
        path: String,
    },
}

/// Result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchCallOutput {
    /// `apo_…`.
    pub id: String,
    /// Whether it succeeded: `completed` or `failed`.
    pub status: ItemStatus,
    /// Id of the call.
    pub call_id: String,
    /// Text for the model, such as the reason for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl PatchOperation {
    /// Returns the path of its file.
    pub fn path(&self) -> &str {
        match self {
            Self::CreateFile { path, .. } | Self::UpdateFile { path, .. } | Self::DeleteFile { path } => path,
        }
    }

    /// Returns it without its diff.
    pub(super) fn begun(&self) -> Self {
        let mut begun = self.clone();
        if let Self::CreateFile { diff, .. } | Self::UpdateFile { diff, .. } = &mut begun {
            diff.clear();
        }
        begun
    }
}

impl PatchCall {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCall {
        FunctionCall {
            id: self.id,
            status: self.status,
            call_id: self.call_id,
            name: CallKind::Patch.function().to_owned(),
            namespace: None,
            arguments: json!(self.operation).to_string(),
            caller: None,
        }
    }
}

impl PatchCallOutput {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCallOutput {
        let text = match (self.status, self.output) {
            (ItemStatus::Failed, Some(why)) => format!("The patch was not applied: {why}"),
            (ItemStatus::Failed, None) => "The patch was not applied.".to_owned(),
            (_, Some(output)) => output,
            (_, None) => "The patch was applied.".to_owned(),
        };
        FunctionCallOutput {
            caller: None,
            id: self.id,
            status: ItemStatus::Completed,
            call_id: self.call_id,
            output: FunctionOutput::Text(text),
        }
    }
}
