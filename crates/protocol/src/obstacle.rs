//! Obstacles to copies of a kernel.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::text::acts;

/// Maximum number of characters of a description, and of a text in it.
const MAX_CHARS: usize = 120;

/// Property of a session that a copy of its kernel cannot have, and that forbids a standby, a
/// checkpoint or a fork. Its text fits after "the session has".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// Threads that Python started.
    PythonThreads,
    /// Threads of libraries.
    Threads {
        /// Names of the libraries.
        #[serde(deserialize_with = "short")]
        owners: String,
    },
    /// Child processes.
    ChildProcesses,
    /// An open pipe.
    OpenPipe,
    /// An open socket.
    OpenSocket,
    /// An open event queue.
    OpenEventQueue,
    /// A file with a lock.
    LockedFile,
    /// An open file that was removed.
    RemovedFile,
    /// A file in `/dev/shm`.
    SharedFile,
    /// A mapped file that other kernels can change, or that cannot be named.
    MappedFile,
    /// Memory that other processes can change.
    SharedMemory,
    /// A timer.
    Timer,
    /// An open file with a number above a limit.
    HighDescriptor {
        /// The limit.
        limit: u32,
    },
    /// A limit on threads, which hides the rules of Landlock.
    ThreadLimit,
    /// Rules of Landlock that code has put on the kernel.
    OwnRules,
    /// A state that could not be read.
    UnknownState {
        /// Type of the exception.
        #[serde(deserialize_with = "short")]
        error: String,
    },
    /// Failure of the copy itself.
    NoCopy {
        /// Reason of the failure.
        #[serde(deserialize_with = "short")]
        reason: String,
    },
    /// No spare channel for a standby.
    NoSpareChannel,
    /// No socket for a kept copy.
    MissingDescriptor,
    /// A mapped file that was removed.
    RemovedMapping,
    /// A mapped file that the other sandbox lacks.
    MissingMapping,
    /// A shared mapping of a file.
    SharedMapping,
    /// A mapping of an unknown kind.
    UnusualMapping,
    /// More mappings than are read.
    TooManyMappings,
    /// A system call filter that code has put on the kernel.
    OwnFilter,
    /// A socket with a number that is not one of a copy.
    UnusualSocket,
    /// A C library whose threads are not known.
    UnknownLibrary,
    /// A processor whose kernels cannot be moved.
    UnknownProcessor,
    /// A kernel that does not wait for a message.
    BusyKernel,
    /// The end of the kernel while it was copied.
    #[serde(skip)]
    EndedKernel,
    /// A kernel that cannot be reached.
    #[serde(skip)]
    UnreachableKernel {
        /// Reason of the failure.
        reason: String,
    },
    /// A process beside its cells.
    #[serde(skip)]
    Process {
        /// Its ID.
        id: String,
    },
    /// A connection to a port or a process.
    #[serde(skip)]
    OpenConnection,
    /// A volume.
    #[serde(skip)]
    Volume,
    /// A way out to the network.
    #[serde(skip)]
    Egress,
}

impl Obstacle {
    fn text(&self) -> Cow<'_, str> {
        let fixed = match self {
            Self::Threads { owners } => return format!("threads ({owners})").into(),
            Self::HighDescriptor { limit } => {
                return format!("an open file with a number above {limit}").into();
            }
            Self::UnknownState { error } => return format!("an unknown state ({error})").into(),
            Self::NoCopy { reason } => return format!("no copy of the kernel ({reason})").into(),
            Self::Process { id } => return format!("a process beside its cells (`{id}`)").into(),
            Self::UnreachableKernel { reason } => {
                return format!("a kernel that cannot be reached ({reason})").into();
            }
            Self::PythonThreads => "threads that Python started",
            Self::ChildProcesses => "child processes",
            Self::OpenPipe => "an open pipe",
            Self::OpenSocket => "an open socket",
            Self::OpenEventQueue => "an open event queue",
            Self::LockedFile => "a locked file",
            Self::RemovedFile => "an open file that was removed",
            Self::SharedFile => "a file in /dev/shm",
            Self::MappedFile => "a mapped file",
            Self::SharedMemory => "shared memory",
            Self::Timer => "a timer",
            Self::ThreadLimit => "a limit on its threads",
            Self::OwnRules => "Landlock rules of its own",
            Self::NoSpareChannel => "no spare channel",
            Self::MissingDescriptor => "a missing descriptor",
            Self::RemovedMapping => "a mapped file that was removed",
            Self::MissingMapping => "a mapped file that the other sandbox lacks",
            Self::SharedMapping => "a shared mapping",
            Self::UnusualMapping => "an unusual mapping",
            Self::TooManyMappings => "too many mappings",
            Self::OwnFilter => "a system call filter of its own",
            Self::UnusualSocket => "an unusual socket",
            Self::UnknownLibrary => "an unknown C library",
            Self::UnknownProcessor => "a processor other than x86-64",
            Self::BusyKernel => "a kernel that does not wait",
            Self::EndedKernel => "a kernel that ended meanwhile",
            Self::OpenConnection => "an open connection to one of its ports or processes",
            Self::Volume => "a volume",
            Self::Egress => "a way out to the network (`egress`)",
        };
        fixed.into()
    }
}

/// Writes a bounded text without characters that act on a terminal: names and reasons come from the
/// sandbox.
impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        let shown: String = text.chars().filter(|c| !acts(*c)).take(MAX_CHARS).collect();
        f.write_str(&shown)
    }
}

/// Reads the beginning of a text: the sandbox must not fill the memory of the host.
fn short<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.chars().take(MAX_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_obstacle_is_short_and_acts_on_no_terminal() {
        let threads = |owners: &str| {
            let sent = serde_json::json!({"kind": "threads", "owners": owners});
            serde_json::from_value::<Obstacle>(sent).unwrap()
        };
        assert_eq!(threads("pol\u{1b}ars").to_string(), "threads (polars)");
        let long = threads(&"x".repeat(1000));
        let owners = "x".repeat(120);
        assert_eq!(long, Obstacle::Threads { owners });
        assert_eq!(long.to_string(), format!("threads ({}", "x".repeat(111)));
    }

    #[test]
    fn a_guest_names_an_obstacle_by_its_kind_and_none_that_only_the_host_knows() {
        let read = serde_json::from_str::<Obstacle>;
        assert_eq!(read(r#"{"kind":"open_pipe"}"#).unwrap(), Obstacle::OpenPipe);
        assert_eq!(
            read(r#"{"kind":"high_descriptor","limit":900}"#)
                .unwrap()
                .to_string(),
            "an open file with a number above 900"
        );
        for unknown in [
            r#"{"kind":"volume"}"#,
            r#"{"kind":"process","id":"p1"}"#,
            r#""open_pipe""#,
        ] {
            assert!(read(unknown).is_err(), "{unknown}");
        }
    }
}
