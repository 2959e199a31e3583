//! Features that a backend lacks compared with the process backend.

use serde::{Deserialize, Serialize};

use super::BackendKind;

/// Something that the process backend does and that another backend may not do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// Variables do not survive a kernel that dies.
    Rescue,
    /// Sessions cannot keep checkpoints of their variables and files.
    Checkpoints,
    /// Sessions cannot be forked.
    Forks,
    /// Packages that a cell requires cannot be added.
    Requirements,
    /// Sessions cannot have higher limits than the backend.
    HigherLimits,
    /// The kernel of a session with other limits than the backend imports libraries when code needs them.
    WarmOtherLimits,
    /// A kernel is ended only after it has taken more memory than its limit.
    ExactMemoryLimit,
    /// The number of files is not limited.
    FileLimit,
    /// Code sees names of processes that serve its sandbox.
    HiddenProcesses,
    /// Programs with a terminal cannot open it as `/dev/tty`, and do not hear of changes of its size.
    FullTerminals,
}

impl Lack {
    /// Everything that a backend can lack.
    pub const ALL: [Self; 10] = [
        Self::Rescue,
        Self::Checkpoints,
        Self::Forks,
        Self::Requirements,
        Self::HigherLimits,
        Self::WarmOtherLimits,
        Self::ExactMemoryLimit,
        Self::FileLimit,
        Self::HiddenProcesses,
        Self::FullTerminals,
    ];

    /// Returns its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rescue => "rescue",
            Self::Checkpoints => "checkpoints",
            Self::Forks => "forks",
            Self::Requirements => "requirements",
            Self::HigherLimits => "higher_limits",
            Self::WarmOtherLimits => "warm_other_limits",
            Self::ExactMemoryLimit => "exact_memory_limit",
            Self::FileLimit => "file_limit",
            Self::HiddenProcesses => "hidden_processes",
            Self::FullTerminals => "full_terminals",
        }
    }

    /// Returns what a backend that does not lack it does.
    pub const fn otherwise(self) -> &'static str {
        match self {
            Self::Rescue => "variables survive a kernel that dies",
            Self::Checkpoints => "a session can go back to a checkpoint of its variables and files",
            Self::Forks => "a session can be forked into independent ones",
            Self::Requirements => "a cell can require packages",
            Self::HigherLimits => "a session can have higher limits than the backend",
            Self::WarmOtherLimits => "a session with other limits starts as fast",
            Self::ExactMemoryLimit => "memory is limited to the byte",
            Self::FileLimit => "the number of files is limited",
            Self::HiddenProcesses => "code sees no process that serves its sandbox",
            Self::FullTerminals => {
                "programs open their terminal as `/dev/tty`, and hear of changes of its size"
            }
        }
    }
}

impl BackendKind {
    /// Returns what sandboxes of the backend lack. The conformance tests fail if it lacks more, or less.
    pub const fn lacks(self) -> &'static [Lack] {
        match self {
            Self::Process => &[],
            Self::Gvisor => &[
                Lack::Rescue,
                Lack::Checkpoints,
                Lack::HigherLimits,
                Lack::WarmOtherLimits,
                Lack::ExactMemoryLimit,
                Lack::FileLimit,
                Lack::HiddenProcesses,
                Lack::FullTerminals,
            ],
            Self::Microvm => &[Lack::Checkpoints, Lack::HigherLimits],
        }
    }
}
