//! Messages between the host and a guest: processes and files of a sandbox.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Message;

/// What the host asks of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToGuest {
    /// Sends SIGINT to a kernel.
    Interrupt {
        /// The kernel's process in the sandbox.
        pid: u32,
    },
    /// Kills every process but the guest; answered when they are gone.
    KillAll {
        /// Repeated in the answer.
        #[serde(default)]
        request: u64,
        /// A process of the sandbox that is spared: its kernel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        except: Option<u32>,
    },
    /// Runs a command.
    Exec {
        /// Repeated in each answer.
        exec: u64,
        /// The program and its arguments.
        argv: Vec<String>,
        /// The working directory.
        cwd: String,
        /// The environment.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Whether the environment comes on top of the one that commands of this sandbox have; otherwise it is the whole.
        #[serde(default)]
        inherit: bool,
        /// After how many milliseconds it is killed, with everything that it has started.
        timeout_ms: u64,
    },
    /// Ends a command that runs; answered by its `exited`.
    Stop {
        /// The command.
        exec: u64,
        /// Whether it is killed with everything that it has started, rather than sent SIGINT.
        #[serde(default)]
        kill: bool,
    },
    /// Lists files.
    List {
        /// Repeated in the answer.
        request: u64,
        /// The directory to walk.
        root: String,
        /// Leaves out what has not changed since an earlier answer's stamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// The most files to list.
        max_files: u32,
    },
    /// Reads a part of a file.
    Read {
        /// Repeated in the answer.
        request: u64,
        /// The file.
        path: String,
        /// The first byte.
        offset: u64,
        /// The most bytes.
        length: u64,
    },
    /// Writes blob 0 to a file.
    Write {
        /// Repeated in the answer.
        request: u64,
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
        /// Whether to add to what is there instead of replacing it.
        #[serde(default)]
        append: bool,
        /// Whether a regular file that is there keeps its mode, and anything else that is there is refused.
        #[serde(default)]
        keep: bool,
        /// Refuses to write unless the file is still the one that a `read` has told of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<FileStamp>,
    },
    /// Removes a file.
    Remove {
        /// Repeated in the answer.
        request: u64,
        /// The file.
        path: String,
    },
    /// Asks how much is used.
    Stats {
        /// Repeated in the answer.
        request: u64,
    },
}

impl Message for ToGuest {
    const TYPES: &'static [&'static str] = &[
        "interrupt",
        "kill_all",
        "exec",
        "stop",
        "list",
        "read",
        "write",
        "remove",
        "stats",
    ];
}

/// What a guest tells the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromGuest {
    /// The guest is there.
    Hello {
        /// Its generation of the protocol.
        generation: u32,
    },
    /// A command wrote blob 0.
    Stream {
        /// The command.
        exec: u64,
        /// Where it wrote.
        stream: Stream,
    },
    /// A command has ended.
    Exited {
        /// The command.
        exec: u64,
        /// Its status, when it exited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal, when it was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// Whether it was killed at its deadline.
        #[serde(default)]
        timed_out: bool,
        /// Whether something that it started may have got away from its end.
        #[serde(default)]
        leaked: bool,
    },
    /// Answers `list`.
    Files {
        /// The request.
        request: u64,
        /// Says "now" to a later `list`.
        stamp: u64,
        /// The files, at most as many as asked for.
        files: Vec<FileEntry>,
        /// What is there but can not be listed.
        #[serde(default)]
        skipped: Vec<SkippedFile>,
        /// How many files there are.
        total: u64,
    },
    /// Answers `read`; blob 0 are the bytes.
    Content {
        /// The request.
        request: u64,
        /// Whether the file ends after these bytes.
        eof: bool,
        /// Which file it was, as of before the bytes were read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<FileStamp>,
    },
    /// Answers a request that has no other answer.
    Ok {
        /// The request.
        request: u64,
    },
    /// Says that a request failed.
    Error {
        /// The request.
        request: u64,
        /// What kind of failure, such as `not_found`.
        code: String,
        /// What happened.
        message: String,
    },
    /// Answers `stats`.
    Stats {
        /// The request.
        request: u64,
        /// Each writable file system.
        disks: Vec<Disk>,
        /// How many processes there are.
        processes: u32,
    },
}

impl Message for FromGuest {
    const TYPES: &'static [&'static str] = &[
        "hello", "stream", "exited", "files", "content", "ok", "error", "stats",
    ];
}

/// One of a command's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What changes when a file is changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStamp {
    /// Its number in its file system.
    pub inode: u64,
    /// Its bytes.
    pub size: u64,
    /// When its bytes were last written, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When anything of it was last changed, in nanoseconds since 1970.
    pub ctime_ns: i64,
}

/// A file in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Its absolute path in the sandbox.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Its type and permission bits.
    pub mode: u32,
}

/// Something that is there but was not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedFile {
    /// Its path; names that are not UTF-8 are shown approximately.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A writable file system of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Where it is mounted.
    pub path: String,
    /// Bytes in use.
    pub bytes_used: u64,
    /// Bytes that may be used.
    pub bytes_limit: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes that may be used.
    pub inodes_limit: u64,
}
