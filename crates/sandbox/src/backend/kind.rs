//! The backends of this machine by name, from the weakest wall to the strongest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A backend that makes sandboxes on this machine. A greater one has a stronger wall.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// Processes, confined by the host's kernel.
    #[default]
    Process,
    /// A kernel in user space, `runsc`, between the code and the host's kernel.
    Gvisor,
    /// A virtual machine with a kernel of its own.
    Microvm,
}

impl BackendKind {
    /// Every backend, from the weakest wall to the strongest.
    pub const ALL: [Self; 3] = [Self::Process, Self::Gvisor, Self::Microvm];

    /// Returns the backend's name in reports and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Gvisor => "gvisor",
            Self::Microvm => "microvm",
        }
    }

    /// Returns whether a hibernated session keeps its variables. The conformance tests fail if this is wrong.
    pub const fn suspends(self) -> bool {
        matches!(self, Self::Gvisor | Self::Microvm)
    }

    /// Returns whether the first request to a sandbox takes much longer than the next ones,
    /// whatever it asks: the memory of a restored machine is read, and an emulator translates code,
    /// when they are first used.
    pub const fn wakes_slowly(self) -> bool {
        matches!(self, Self::Microvm)
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for BackendKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("`{text}` is not a backend; choose `process`, `gvisor` or `microvm`"))
    }
}

/// The backend of a session: one by name, or the strongest one that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum BackendChoice {
    /// The backend of this name.
    Only(BackendKind),
    /// The strongest backend that works on this machine.
    Auto,
    /// Pods of a Kubernetes cluster, which only a server can have. What stands around them is not known here.
    Kubernetes,
}

impl FromStr for BackendChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "kubernetes" => Ok(Self::Kubernetes),
            _ => text
                .parse()
                .map(Self::Only)
                .map_err(|error| format!("{error}, `auto`, or for a server `kubernetes`")),
        }
    }
}

impl TryFrom<String> for BackendChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BackendChoice> for String {
    fn from(choice: BackendChoice) -> Self {
        match choice {
            BackendChoice::Only(kind) => kind.name().to_owned(),
            BackendChoice::Auto => "auto".to_owned(),
            BackendChoice::Kubernetes => "kubernetes".to_owned(),
        }
    }
}
