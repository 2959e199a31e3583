//! Answers of the tools.

use schemars::JsonSchema;
use serde::Serialize;

use super::hint::Hint;
use crate::execution::SkippedFile;

/// An answer of a tool: what it did, or why it did nothing.
pub type Reply<T> = std::result::Result<T, WorkbenchRefusal>;

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExecResult {
    /// The code it exited with; 128 + n if signal n killed it, 124 if its time was over, 127 if
    /// there is no such program.
    pub exit_code: i32,
    /// Text that it wrote to stdout. Bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Text that it wrote to stderr.
    pub stderr: String,
    /// Whether the middle of stdout was left out; a line there says how much, and which file of the
    /// sandbox has all of it.
    pub stdout_truncated: bool,
    /// The same of stderr.
    pub stderr_truncated: bool,
    /// New and changed files below /tmp/output, by their names there.
    pub output_files: Vec<String>,
    /// Number of all output files; those beyond the limit come with the next command.
    pub total_output_files: u64,
    /// Seconds that it ran.
    pub execution_time: f64,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
    /// Files that were left in /tmp/output and not taken, with reasons: links, devices, files that are too
    /// large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_files: Vec<SkippedFile>,
    /// Additional note: a limit that was hit, or a replaced sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Advice for the next step.
    pub hint: Hint,
}

/// A file was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WriteResult {
    /// `true`.
    pub success: bool,
    /// The file.
    pub file_path: String,
    /// Its bytes.
    pub bytes_written: u64,
    /// Advice for the next step.
    pub hint: Hint,
}

/// A file was edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditResult {
    /// `true`.
    pub success: bool,
    /// The file.
    pub file_path: String,
    /// Advice for the next step.
    pub hint: Hint,
}

/// A patch was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatchResult {
    /// `true`.
    pub success: bool,
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// Advice for the next step.
    pub hint: Hint,
}

/// A file of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatchedFile {
    /// The file.
    pub file_path: String,
    /// Change of the file.
    pub change: PatchChange,
}

/// Change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchChange {
    /// It was created.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// A tool did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub struct WorkbenchRefusal {
    /// `false`.
    pub success: bool,
    /// Reason.
    pub error: String,
    /// The file, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    /// Number of occurrences of the text to replace, if it is there more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<u64>,
    /// The lines that the first ten of them begin in, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<u64>>,
    /// Advice for the next step.
    pub hint: Hint,
}

impl WorkbenchRefusal {
    pub(super) fn new(error: impl Into<String>, hint: Hint) -> Self {
        Self {
            success: false,
            error: error.into(),
            file_path: None,
            occurrences: None,
            lines: None,
            hint,
        }
    }

    pub(super) fn of_file(path: &str, error: impl Into<String>, hint: Hint) -> Self {
        Self {
            file_path: Some(path.to_owned()),
            ..Self::new(error, hint)
        }
    }
}
