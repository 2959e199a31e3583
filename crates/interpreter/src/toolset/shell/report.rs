//! Reports of commands of a shell.

use serde::Serialize;
use tokio::sync::mpsc;

use crate::execution::{ProducedFile, SkippedFile};
use crate::session::processes::ProcessStream;

/// Listener to the commands of a call. If it is closed, they are ended.
pub type ShellListener = mpsc::Sender<ShellEvent>;

/// Progress of a command, which has an index in its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellEvent {
    /// It wrote text.
    Wrote {
        /// Index of the command.
        command: usize,
        /// Stream that it wrote to.
        stream: ProcessStream,
        /// The text.
        text: String,
    },
    /// It ended.
    Ended {
        /// Index of the command.
        command: usize,
        /// Its result.
        report: CommandReport,
    },
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandReport {
    /// Text that it wrote to stdout.
    pub stdout: String,
    /// Text that it wrote to stderr.
    pub stderr: String,
    /// Number of characters of both that were left out at the end; of long output, about that number.
    pub left_out: u64,
    /// Its end.
    pub end: CommandOutcome,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutcome {
    /// It exited with this code, which is 128 + n after signal n.
    Exited(i32),
    /// It was ended after this number of milliseconds.
    TimedOut(u64),
}

/// Result of the commands of a call.
#[derive(Debug, Serialize)]
pub struct ShellReport {
    /// The commands' results, in their order.
    pub commands: Vec<CommandReport>,
    /// New and changed files.
    pub files: Vec<ProducedFile>,
    /// Files that were not stored, with reasons.
    pub skipped_files: Vec<SkippedFile>,
}
