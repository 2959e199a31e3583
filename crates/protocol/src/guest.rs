//! Messages between the host and a guest: processes and files of a sandbox.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MessageSet;

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalSize {
    /// Number of rows.
    pub rows: u16,
    /// Number of columns.
    pub columns: u16,
}

/// A message from the host to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToGuest {
    /// Sends SIGINT to a kernel.
    Interrupt {
        /// Process id of the kernel in the sandbox.
        pid: u32,
    },
    /// Kills every process except the guest and the commands whose output is kept;
    /// answered when none of them runs any more.
    KillAll {
        /// Repeated in the response.
        #[serde(default)]
        request: u64,
        /// Processes of the sandbox to be spared: its kernel, and kept copies of kernels.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        except: Vec<u32>,
    },
    /// Runs a command.
    Exec {
        /// Repeated in each response.
        exec: u64,
        /// The program and its arguments.
        argv: Vec<String>,
        /// The working directory.
        cwd: String,
        /// The environment.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Whether the environment is added to the sandbox's default for commands; otherwise it
        /// replaces it.
        #[serde(default)]
        inherit: bool,
        /// Duration in milliseconds after which the command is killed, with everything that it
        /// started.
        timeout_ms: u64,
        /// Whether it reads what `input` sends; otherwise its standard input is empty.
        #[serde(default)]
        input: bool,
        /// Path of a file for its output. It makes the command a process beside cells: the guest
        /// answers `started` and keeps its output until `forget`, and `kill_all` spares it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<String>,
        /// Size of a terminal, which is then its standard input, output and error stream. Input that
        /// is closed becomes Ctrl-D.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terminal: Option<TerminalSize>,
    },
    /// Ends a running command; answered by its `exited`.
    Stop {
        /// The command.
        exec: u64,
        /// Whether to kill it with everything that it started, rather than send SIGINT.
        #[serde(default)]
        kill: bool,
    },
    /// Sends a signal to the process group of a running command; SIGKILL also ends everything that
    /// it started.
    Signal {
        /// Repeated in the response.
        request: u64,
        /// The command.
        exec: u64,
        /// Number of the signal.
        signal: i32,
    },
    /// Sends blob 0 to the standard input of a command; answered when it is queued.
    Input {
        /// Repeated in the response.
        request: u64,
        /// The command.
        exec: u64,
        /// Whether the input ends after these bytes.
        #[serde(default)]
        close: bool,
    },
    /// Changes the size of a command's terminal.
    Resize {
        /// Repeated in the response.
        request: u64,
        /// The command.
        exec: u64,
        /// The new size.
        size: TerminalSize,
    },
    /// Reads a part of the kept output of a command.
    Output {
        /// Repeated in the response.
        request: u64,
        /// The command.
        exec: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Maximum number of bytes.
        length: u64,
        /// Maximum duration in milliseconds to wait for output after the offset.
        #[serde(default)]
        wait_ms: u64,
    },
    /// Drops the kept output of a command, and kills it if it is running.
    Forget {
        /// The command.
        exec: u64,
    },
    /// Lists the TCP ports on which programs listen.
    Ports {
        /// Repeated in the response.
        request: u64,
    },
    /// Connects to a TCP port of the sandbox's loopback device. The number of the request is then
    /// that of the connection.
    Connect {
        /// Repeated in the response.
        request: u64,
        /// The port.
        port: u16,
    },
    /// Listens on a TCP port of the sandbox's loopback device. The number of the request is then
    /// that of the listener.
    Listen {
        /// Repeated in the response.
        request: u64,
        /// The port.
        port: u16,
    },
    /// Accepts a connection of a program; answered when there is one. The number of the request is
    /// then that of the connection.
    Accept {
        /// Repeated in the response.
        request: u64,
        /// The listener.
        listener: u64,
    },
    /// Receives bytes of a connection; answered by `content` when there are some, or at its end.
    Receive {
        /// Repeated in the response.
        request: u64,
        /// The connection.
        connection: u64,
        /// Maximum number of bytes.
        length: u32,
    },
    /// Sends blob 0 over a connection; answered when it is handed over.
    Send {
        /// Repeated in the response.
        request: u64,
        /// The connection.
        connection: u64,
        /// Whether nothing comes after these bytes.
        #[serde(default)]
        close: bool,
    },
    /// Ends a connection or a listener.
    HangUp {
        /// The connection or listener.
        connection: u64,
    },
    /// Lists files.
    List {
        /// Repeated in the response.
        request: u64,
        /// Directory to walk.
        root: String,
        /// Stamp of an earlier response; files that have not changed since are left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// Maximum number of files to list.
        max_files: u32,
    },
    /// Reads a part of a file.
    Read {
        /// Repeated in the response.
        request: u64,
        /// The file.
        path: String,
        /// Offset of the first byte.
        offset: u64,
        /// Maximum number of bytes.
        length: u64,
    },
    /// Writes blob 0 to a file.
    Write {
        /// Repeated in the response.
        request: u64,
        /// The file.
        path: String,
        /// Permission bits of the file.
        mode: u32,
        /// Whether to append to an existing file instead of replacing it.
        #[serde(default)]
        append: bool,
        /// Whether an existing regular file keeps its mode, and anything else is rejected.
        #[serde(default)]
        keep: bool,
        /// Rejects the write unless the file is still the one that a `read` has described.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<FileStamp>,
    },
    /// Removes a file.
    Remove {
        /// Repeated in the response.
        request: u64,
        /// The file.
        path: String,
    },
    /// Saves a snapshot of `/workspace` and `/tmp`, except for datasets. Nothing may run in the
    /// sandbox meanwhile. Answered by `saved`.
    Save {
        /// Repeated in the response.
        request: u64,
        /// Number of the snapshot.
        snapshot: u64,
        /// Maximum number of bytes to copy.
        limit: u64,
    },
    /// Makes the files equal to a snapshot, which is kept. Nothing may run in the sandbox meanwhile.
    Restore {
        /// Repeated in the response.
        request: u64,
        /// The snapshot.
        snapshot: u64,
    },
    /// Stops every process that `kill_all` would kill, and then makes the files equal to a
    /// snapshot, as `restore` does. Refused as `gone`, with nothing done, if the process that goes
    /// on with them cannot. `kill_stopped` comes when that goes on: taking apart a process with
    /// much memory takes milliseconds.
    RollBack {
        /// Repeated in the response.
        request: u64,
        /// The snapshot.
        snapshot: u64,
        /// The process that goes on.
        needed: u32,
        /// Processes of the sandbox to be spared, that one among them.
        except: Vec<u32>,
    },
    /// Kills the processes that `roll_back` has stopped. Not answered.
    KillStopped,
    /// Requests what differs between the files and a snapshot. Answered by `changes`.
    Changes {
        /// Repeated in the response.
        request: u64,
        /// The snapshot.
        snapshot: u64,
        /// Maximum number of differences.
        most: u32,
    },
    /// Reads a part of a snapshot, in a form that `write_snapshot` takes in another sandbox.
    /// Answered by `content`.
    ReadSnapshot {
        /// Repeated in the response.
        request: u64,
        /// The snapshot.
        snapshot: u64,
        /// Offset of the part.
        offset: u64,
        /// Maximum number of bytes.
        length: u64,
    },
    /// Adds a snapshot of another sandbox, part by part. Blob: the next part.
    WriteSnapshot {
        /// Repeated in the response.
        request: u64,
        /// Number that the snapshot gets.
        snapshot: u64,
        /// Whether this is the last part.
        last: bool,
    },
    /// Removes a snapshot, if there is one of this number.
    Discard {
        /// Repeated in the response.
        request: u64,
        /// The snapshot.
        snapshot: u64,
    },
    /// Requests the resource usage.
    Stats {
        /// Repeated in the response.
        request: u64,
    },
}

impl MessageSet for ToGuest {
    const TYPES: &'static [&'static str] = &[
        "interrupt",
        "kill_all",
        "exec",
        "stop",
        "signal",
        "input",
        "resize",
        "output",
        "forget",
        "ports",
        "connect",
        "listen",
        "accept",
        "receive",
        "send",
        "hang_up",
        "list",
        "read",
        "write",
        "remove",
        "save",
        "restore",
        "roll_back",
        "kill_stopped",
        "changes",
        "read_snapshot",
        "write_snapshot",
        "discard",
        "stats",
    ];
}

/// A message from a guest to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromGuest {
    /// The guest is ready.
    Hello {
        /// Generation of the guest's protocol.
        generation: u32,
    },
    /// A command whose output is kept has started.
    Started {
        /// The command.
        exec: u64,
    },
    /// A command wrote blob 0.
    Stream {
        /// The command.
        exec: u64,
        /// Stream to which it wrote.
        stream: Stream,
    },
    /// A command has ended.
    Exited {
        /// The command.
        exec: u64,
        /// Exit status, if it exited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Signal, if it was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// Whether it was killed at its deadline.
        #[serde(default)]
        timed_out: bool,
        /// Whether processes that it started may still run.
        #[serde(default)]
        leaked: bool,
    },
    /// Answers `output`; blob 0 contains the bytes.
    Output {
        /// The request.
        request: u64,
        /// Offset of the first byte, which is greater than the requested one if the bytes before it
        /// are lost.
        offset: u64,
        /// Number of bytes that the command has written until now.
        total: u64,
        /// Whether the output ends after these bytes.
        eof: bool,
        /// Ranges of these bytes that the command wrote to stderr, in ascending order: the offsets of each
        /// part's first byte and of the byte after its last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<[u64; 2]>,
    },
    /// Answers `list`.
    Files {
        /// The request.
        request: u64,
        /// Stamp for a later `list`.
        stamp: u64,
        /// Files, at most as many as requested.
        files: Vec<FileEntry>,
        /// Entries that cannot be listed.
        #[serde(default)]
        skipped: Vec<SkippedFile>,
        /// Total number of files.
        total: u64,
    },
    /// Answers `ports`.
    Ports {
        /// The request.
        request: u64,
        /// The ports, sorted.
        ports: Vec<u16>,
    },
    /// Answers `read` and `receive`; blob 0 contains the bytes.
    Content {
        /// The request.
        request: u64,
        /// Whether the file or connection ends after these bytes.
        eof: bool,
        /// Identity of the file before the bytes were read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<FileStamp>,
    },
    /// Answers `save`.
    Saved {
        /// The request.
        request: u64,
        /// Number of files and links in the snapshot.
        files: u64,
        /// Number of bytes that were copied: files that had not changed since the last snapshot were
        /// not.
        bytes: u64,
    },
    /// Answers `changes`.
    Changes {
        /// The request.
        request: u64,
        /// Differences, at most as many as requested.
        found: Vec<FileDifference>,
        /// Total number of differences.
        total: u64,
    },
    /// Answers a request that has no other response.
    Ok {
        /// The request.
        request: u64,
    },
    /// Reports that a request failed.
    Error {
        /// The request.
        request: u64,
        /// Kind of the failure, such as `not_found`.
        code: String,
        /// Description of the failure.
        message: String,
    },
    /// Answers `stats`.
    Stats {
        /// The request.
        request: u64,
        /// Writable file systems.
        disks: Vec<Disk>,
        /// Number of processes.
        processes: u32,
    },
}

impl MessageSet for FromGuest {
    const TYPES: &'static [&'static str] = &[
        "hello", "started", "stream", "exited", "output", "files", "ports", "content", "saved", "changes",
        "ok", "error", "stats",
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

/// A file, link or directory that differs from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDifference {
    /// Path; the path of a directory ends with `/`.
    pub path: String,
    /// Kind of the difference.
    pub change: ChangeKind,
}

/// Kind of a difference from an earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content, kind or mode is another.
    Changed,
    /// It is no longer there.
    Removed,
}

impl ChangeKind {
    /// Returns its name, as in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// Identity of a file, which changes when the file is changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStamp {
    /// Inode number in its file system.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last write to its content, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of content or metadata, in nanoseconds since 1970.
    pub ctime_ns: i64,
}

/// A file in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Absolute path in the sandbox.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Type and permission bits.
    pub mode: u32,
}

/// An entry that exists but was not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedFile {
    /// Path; names that are not UTF-8 are shown approximately.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// A writable file system of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Mount point.
    pub path: String,
    /// Bytes in use.
    pub bytes_used: u64,
    /// Maximum number of bytes.
    pub bytes_limit: u64,
    /// Number of inodes in use.
    pub inodes_used: u64,
    /// Maximum number of inodes.
    pub inodes_limit: u64,
}
