//! Result of a cell.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_sandbox::backend::Lack;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::limits::NetworkPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::connector::FetchRecord;
pub use crate::finding::Finding;
use crate::lineage::VariableOrigin;
use crate::output::Output;
pub use crate::rejection::Rejection;
pub use crate::unsent::UnsentOutputs;

/// One run of a cell.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The cell's number in its session, from 1; 0 if it was only checked.
    pub cell: u64,
    /// Outcome.
    pub outcome: Outcome,
    /// State of the session's variables.
    pub state: VariablesState,
    /// Outputs that it showed, in order; those shown before a failure included.
    pub outputs: Vec<Output>,
    /// Number of outputs that exceeded the limit and were dropped.
    pub outputs_dropped: u32,
    /// Text that was written to stdout.
    pub stdout: StreamText,
    /// Output to stderr.
    pub stderr: StreamText,
    /// New and changed files.
    pub files: Vec<ProducedFile>,
    /// Files that could not be collected, with reasons.
    pub skipped_files: Vec<SkippedFile>,
    /// Findings about its data.
    pub findings: Vec<Finding>,
    /// Fetches from connectors, in the order of its calls, at most 200.
    pub fetches: Vec<FetchRecord>,
    /// Number of calls beyond that.
    pub fetches_dropped: u32,
    /// Origins of the variables that it bound or changed, if it has a producer and completed.
    pub origins: BTreeMap<String, VariableOrigin>,
    /// Notes for a model in addition to the outputs: lost variables, limits, and how to continue.
    pub note: Option<String>,
    /// Duration of the cell, as the host saw it.
    pub duration: Duration,
    /// The sandbox that it ran in.
    pub sandbox: SandboxReport,
}

/// State of a session's variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "State")]
#[serde(rename_all = "snake_case")]
pub enum VariablesState {
    /// They are as the cell left them.
    #[default]
    Kept,
    /// The cell was killed; they are as they were before it. Files are as the cell left them.
    Rescued,
    /// The cell was killed and they are lost; files are kept.
    Lost,
}

/// Outcome of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// To its end.
    Completed,
    /// By an exception, which is the last output.
    Raised,
    /// Its time was over or somebody stopped it; variables are kept.
    Interrupted,
    /// Its kernel is gone. [`Execution::state`] says whether the variables are, too; files are kept.
    KernelLost {
        /// Event that ended the kernel.
        reason: String,
    },
    /// It ran into a limit.
    LimitExceeded(LimitExcess),
    /// It was not run, or what it emitted is not what it had declared.
    Rejected {
        /// Problems of the cell, and how to repair them.
        rejections: Vec<Rejection>,
    },
}

impl Outcome {
    /// The outcome's name in every interface.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Raised => "raised",
            Self::Interrupted => "interrupted",
            Self::KernelLost { .. } => "kernel_lost",
            Self::LimitExceeded(_) => "limit_exceeded",
            Self::Rejected { .. } => "rejected",
        }
    }

    /// The exit code that says the same: 0 to its end, 1 raised, 2 not run, 124 out of time or
    /// interrupted, 125 killed or beyond a limit.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Raised => 1,
            Self::Rejected { .. } => 2,
            Self::Interrupted => 124,
            Self::KernelLost { .. } | Self::LimitExceeded(_) => 125,
        }
    }
}

/// A limit that a cell exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Exceeded")]
pub struct LimitExcess {
    /// The limit.
    pub which: Resource,
    /// Its value, in bytes or pieces.
    pub limit: u64,
    /// Amount that was used or requested, if known.
    pub actual: u64,
    /// Whether the kernel was lost. The execution's state says whether its variables were also
    /// lost.
    pub kernel_lost: bool,
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Bytes of memory.
    Memory,
    /// Processes and threads.
    Processes,
    /// Bytes of a file system of the sandbox.
    Disk,
    /// Files of a file system of the sandbox.
    Inodes,
    /// Bytes of one file.
    FileBytes,
    /// Open descriptors.
    OpenFiles,
    /// Bytes of stdout and stderr.
    OutputBytes,
}

impl Resource {
    /// Its name in messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "number of processes",
            Self::Disk => "disk space",
            Self::Inodes => "number of files",
            Self::FileBytes => "size of one file",
            Self::OpenFiles => "number of open files",
            Self::OutputBytes => "size of stdout and stderr",
        }
    }

    /// Whether it is counted in bytes.
    pub const fn is_bytes(self) -> bool {
        matches!(
            self,
            Self::Memory | Self::Disk | Self::FileBytes | Self::OutputBytes
        )
    }
}

/// Text that was written to a stream, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamText {
    /// The text; where it is truncated, a line in the middle says how much is left out. Bytes that
    /// are not UTF-8 are replaced.
    pub text: String,
    /// Whether something was left out.
    pub truncated: bool,
    /// Bytes that were written in all.
    pub bytes: u64,
}

impl StreamText {
    /// The kept end, if the middle is left out.
    pub fn end(&self) -> Option<&str> {
        let mark = format!(" of {} bytes left out …]\n", self.bytes);
        let at = self.truncated.then(|| self.text.rfind(&mark)).flatten()?;
        Some(&self.text[at + mark.len()..])
    }
}

/// A file that a cell created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProducedFile {
    /// Its path in the sandbox.
    pub path: String,
    /// Its path relative to `/workspace` or `/tmp/output`: safe components only.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The artifact with its content.
    pub sha256: String,
}

/// A file that was not collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedFile {
    /// Its path in the sandbox, control characters escaped.
    pub path: String,
    /// Reason that the file was skipped.
    pub reason: String,
}

/// The sandbox of a cell and its protections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// The backend.
    pub backend: String,
    /// Wall around the sandbox in addition to the host's kernel, such as `gVisor 20240729, platform systrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<String>,
    /// Features that it lacks compared with the sandboxes of the process backend.
    #[serde(skip_serializing_if = "<[Lack]>::is_empty")]
    pub lacks: &'static [Lack],
    /// The image's id.
    pub image: String,
    /// The network that its code can use; missing if there is none.
    #[serde(skip_serializing_if = "NetworkPolicy::is_none")]
    pub network: NetworkPolicy,
    /// The state of every protection.
    pub protections: Report,
}

/// Something that happens while a cell runs.
#[derive(Clone, Debug)]
pub enum Event {
    /// Bytes were written to stdout.
    Stdout(Vec<u8>),
    /// Bytes were written to stderr.
    Stderr(Vec<u8>),
    /// A value was shown.
    Output(Output),
    /// A value was shown under an ID, or has replaced what has that ID.
    Display(DisplayEvent),
    /// Removal of everything that the cell has shown and printed: now, or with `wait` once
    /// something is shown or printed.
    Clear {
        /// Whether to wait.
        wait: bool,
    },
}

/// A value that code can replace.
#[derive(Clone, Debug)]
pub struct DisplayEvent {
    /// ID of the display, at most 200 characters.
    pub id: String,
    /// The value.
    pub output: Output,
    /// Whether it replaces what was shown under that ID, also by an earlier cell.
    pub update: bool,
}
