//! Report of code or a command, for wires that give clients more details than its outputs.

use super::shell::ShellOutput;

/// One run of code, or of another call in a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallReport {
    /// Id of its container.
    pub container: String,
    /// Text that it printed, and the values that it showed.
    pub stdout: String,
    /// Text that it wrote to stderr, its exception, and notes about limits.
    pub stderr: String,
    /// Its exit code.
    pub return_code: i32,
    /// Ids of the files that it created or changed.
    pub files: Vec<String>,
    /// Reason that it did not run, or not to its end.
    pub failure: Option<CallFault>,
    /// Outputs of its commands, if it runs commands of a shell.
    pub commands: Vec<ShellOutput>,
}

/// Reason that a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// Its arguments are invalid.
    InvalidInput,
    /// There was no sandbox, or it failed.
    Unavailable,
    /// Its time was over.
    TimedOut,
}
