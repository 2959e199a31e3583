//! How much a sandbox and a cell may use.

use std::time::Duration;

use cellblock_jail::cgroup::GroupLimits;
use cellblock_jail::confine::ProcessLimits;
use cellblock_jail::mounts::DiskLimits;
use cellblock_jail::room::RoomLimits;
use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The limits of one sandbox and of each cell in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory of all processes and of all files in the sandbox together.
    pub memory_bytes: u64,
    /// Thousandths of a CPU; `None` leaves CPU time unbounded.
    pub cpu_millis: Option<u64>,
    /// Processes and threads.
    pub processes: u64,
    /// Open descriptors per process.
    pub open_files: u64,
    /// Bytes of `/workspace`, and as many of `/tmp`.
    pub disk_bytes: u64,
    /// Files and directories of each of them.
    pub inodes: u64,
    /// Bytes of `/dev/shm`.
    pub shm_bytes: u64,
    /// Bytes of all inputs under `/tmp/data`.
    pub data_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of each of stdout and stderr that are kept: the first and the last halves of it.
    pub stream_kept_bytes: u64,
    /// Bytes of stdout and stderr together after which a cell is stopped.
    pub stream_bytes: u64,
    /// Outputs of one cell; further ones are counted, not kept.
    pub outputs: u32,
    /// Bytes of one output; a larger one is sent as a preview.
    pub output_bytes: u64,
    /// Characters of text in one output.
    pub output_chars: u64,
    /// Bytes of a cell's result as JSON.
    pub result_bytes: u64,
    /// Files that are collected after one cell.
    pub files: u32,
    /// Bytes of one collected file.
    pub collected_file_bytes: u64,
    /// How long a cell may run.
    #[serde(with = "seconds")]
    pub cell_time: Duration,
    /// How long a cell has after an interrupt before its kernel is killed.
    #[serde(with = "seconds")]
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 2 * GIB,
            cpu_millis: None,
            processes: 256,
            open_files: 1024,
            disk_bytes: GIB,
            inodes: 65_536,
            shm_bytes: 256 * MIB,
            data_bytes: GIB,
            file_bytes: GIB,
            stream_kept_bytes: MIB,
            stream_bytes: 64 * MIB,
            outputs: 64,
            output_bytes: 256 * MIB,
            output_chars: 100_000,
            result_bytes: 4 * MIB,
            files: 64,
            collected_file_bytes: 256 * MIB,
            cell_time: Duration::from_mins(1),
            grace: Duration::from_millis(500),
        }
    }
}

/// The longest that a cell may be given unless the host configures otherwise.
pub const MAX_CELL_TIME: Duration = Duration::from_mins(5);

/// Open descriptors of each process of a sandbox that shares a user id with others. Linux counts the descriptors that a user's processes have
/// in the buffers of sockets, lets each process add to them up to its own limit, and refuses whoever has a limit below what is there: this
/// must stay well below the 1024 that other programs mostly have.
const SHARED_OPEN_FILES: u64 = 512;

/// What the image's libraries map to be written and mostly do not use: 2.2 GiB once all have worked (stacks and arenas of threads).
const UNUSED_DATA: u64 = 4 * GIB;
/// Addresses that are reserved without memory behind them: V8, which renders Altair's charts, takes 64.4 GiB for a moment. Beyond this,
/// memory that processes share would be bounded by nothing, as it is no data of any.
const RESERVED_ADDRESSES: u64 = 68 * GIB;

impl Limits {
    /// The first limit of a sandbox that is above one of these, in words.
    pub fn above(&self, most: &Self) -> Option<String> {
        let limits = [
            ("memory_bytes", self.memory_bytes, most.memory_bytes),
            (
                "cpu_millis",
                self.cpu_millis.unwrap_or(u64::MAX),
                most.cpu_millis.unwrap_or(u64::MAX),
            ),
            ("processes", self.processes, most.processes),
            ("open_files", self.open_files, most.open_files),
            ("disk_bytes", self.disk_bytes, most.disk_bytes),
            ("inodes", self.inodes, most.inodes),
            ("shm_bytes", self.shm_bytes, most.shm_bytes),
            ("data_bytes", self.data_bytes, most.data_bytes),
            ("file_bytes", self.file_bytes, most.file_bytes),
        ];
        let (name, asked, most) = limits.into_iter().find(|(_, asked, most)| asked > most)?;
        Some(if name == "cpu_millis" && self.cpu_millis.is_none() {
            format!("`cpu_millis` is not set, the most is {most}")
        } else {
            format!("`{name}` is {asked}, the most is {most}")
        })
    }

    /// What the jail enforces. Where no cgroup bounds memory or processes, per-process limits stand in.
    pub(crate) fn room(&self, memory_cgroup: bool, process_cgroup: bool, own_id: bool) -> RoomLimits {
        RoomLimits {
            group: GroupLimits {
                memory_bytes: Some(self.memory_bytes),
                // One more, as a kernel's standby is none of the user's.
                processes: Some(self.processes.saturating_add(1)),
                cpu_millis: self.cpu_millis,
            },
            disk: DiskLimits {
                bytes: self.disk_bytes,
                inodes: self.inodes,
                shm_bytes: self.shm_bytes,
                data_bytes: self.data_bytes,
            },
            process: ProcessLimits {
                open_files: if own_id {
                    self.open_files
                } else {
                    self.open_files.min(SHARED_OPEN_FILES)
                },
                file_bytes: self.file_bytes,
                data: (!memory_cgroup).then(|| self.memory_bytes.saturating_add(UNUSED_DATA)),
                address_space: (!memory_cgroup)
                    .then(|| self.memory_bytes.saturating_add(UNUSED_DATA + RESERVED_ADDRESSES)),
                processes: (!process_cgroup).then_some(self.processes.saturating_add(1)),
            },
        }
    }
}

mod seconds {
    //! Durations as seconds with a fraction.

    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
    }
}
