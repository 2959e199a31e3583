//! Advice to a model about its next step.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

/// Advice that comes with each result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hint {
    /// Subject of the hint.
    pub code: HintCode,
    /// The advice.
    pub message: String,
}

/// Subject of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintCode {
    /// A command succeeded and left files.
    ExecutedWithFiles,
    /// A command succeeded and left no files.
    ExecutedWithoutFiles,
    /// A command failed.
    ExecutionFailed,
    /// A command ran out of time.
    TimedOut,
    /// A file was written.
    FileWritten,
    /// A path is not allowed.
    InvalidPath,
    /// A file was edited.
    FileEdited,
    /// A patch was applied.
    FilesPatched,
    /// A patch does not fit its files, or is not one.
    PatchFailed,
    /// The text to replace is there more than once.
    NotUnique,
    /// The text to replace is not there.
    NotFound,
    /// A file could not be read, written or edited for another reason.
    FileRefused,
    /// The call itself is wrong.
    InvalidCall,
}

impl Hint {
    fn new(code: HintCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A command succeeded and left so many files, some of which were handed over.
    pub(super) fn executed(handed_over: u64, total: u64) -> Self {
        if handed_over == 0 {
            return Self::new(
                HintCode::ExecutedWithoutFiles,
                "Code executed but no outputs in /tmp/output/. Verify that the script saves \
                 its results there.",
            );
        }
        let later = match total.saturating_sub(handed_over) {
            0 => String::new(),
            later => format!(" {handed_over} of them are handed over now, {later} with the next command."),
        };
        let total = total.max(handed_over);
        Self::new(
            HintCode::ExecutedWithFiles,
            format!(
                "Code executed successfully. {total} output files created.{later} Consider \
                 presenting the results."
            ),
        )
    }

    pub(super) fn failed() -> Self {
        Self::new(
            HintCode::ExecutionFailed,
            "Execution failed. Review stderr and use sandbox_edit_file to fix errors.",
        )
    }

    pub(super) fn timed_out(longest: Duration) -> Self {
        let maximum = longest.as_secs_f64();
        Self::new(
            HintCode::TimedOut,
            format!(
                "Execution ran out of time. Make it faster, or raise `timeout` (at most {maximum} seconds)."
            ),
        )
    }

    pub(super) fn written() -> Self {
        Self::new(
            HintCode::FileWritten,
            "File written successfully. Use sandbox_exec to run it.",
        )
    }

    pub(super) fn invalid_path() -> Self {
        Self::new(
            HintCode::InvalidPath,
            "Invalid path. Use /tmp/ or /workspace/ only; no links, and nothing below /tmp/data/.",
        )
    }

    pub(super) fn edited() -> Self {
        Self::new(
            HintCode::FileEdited,
            "File edited successfully. Re-run with sandbox_exec.",
        )
    }

    pub(super) fn patched() -> Self {
        Self::new(HintCode::FilesPatched, "All files of the patch were changed.")
    }

    pub(super) fn patch_failed() -> Self {
        Self::new(
            HintCode::PatchFailed,
            "No file was changed. Read the file that the error names, and send the whole patch again with \
             its lines as they are there.",
        )
    }

    /// A patch was applied in part, and could not be taken back.
    pub(super) fn patch_left() -> Self {
        Self::new(
            HintCode::PatchFailed,
            "Some files could not be put back. Look at those that the error names before the next step.",
        )
    }

    pub(super) fn not_unique() -> Self {
        Self::new(
            HintCode::NotUnique,
            "Edit failed - old_string not unique. Include more surrounding context.",
        )
    }

    pub(super) fn not_found() -> Self {
        Self::new(
            HintCode::NotFound,
            "Edit failed - old_string not found. Read file first with sandbox_exec.",
        )
    }

    pub(super) fn refused() -> Self {
        Self::new(
            HintCode::FileRefused,
            "The file is as it was. Look at it and at its folder with sandbox_exec (ls -la, head).",
        )
    }

    pub(super) fn invalid_call(tool: &str) -> Self {
        Self::new(
            HintCode::InvalidCall,
            format!("Nothing was done. Call `{tool}` again as its input schema says."),
        )
    }

    pub(super) fn unknown_tool(names: &[&str]) -> Self {
        Self::new(
            HintCode::InvalidCall,
            format!("Nothing was done. The tools are {}.", names.join(", ")),
        )
    }
}
