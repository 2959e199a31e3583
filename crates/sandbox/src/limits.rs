//! Limits of a sandbox and of its cells.

use std::time::Duration;

use cellblock_jail::cgroup::GroupLimits;
use cellblock_jail::confine::ProcessLimits;
use cellblock_jail::mounts::DiskLimits;
pub use cellblock_jail::network::NetworkPolicy;
use cellblock_jail::room::RoomLimits;
use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The limits of one sandbox and of each cell in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum memory in bytes of all processes and files in the sandbox together.
    pub memory_bytes: u64,
    /// Maximum CPU time in thousandths of a CPU; `None` means unlimited.
    pub cpu_millis: Option<u64>,
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Maximum number of open descriptors per process.
    pub open_files: u64,
    /// Maximum size of `/workspace`, and of `/tmp`, in bytes.
    pub disk_bytes: u64,
    /// Maximum number of files and directories in each of them.
    pub inodes: u64,
    /// Maximum size of `/dev/shm` in bytes.
    pub shm_bytes: u64,
    /// Maximum size of all inputs under `/tmp/data` in bytes.
    pub data_bytes: u64,
    /// Maximum size of a file in bytes.
    pub file_bytes: u64,
    /// Number of bytes of stdout, and of stderr, that are kept: the first and the last half of it.
    pub stream_kept_bytes: u64,
    /// Number of bytes of stdout and stderr together after which a cell is stopped.
    pub stream_bytes: u64,
    /// Maximum number of outputs per cell; further ones are counted but not kept.
    pub outputs: u32,
    /// Maximum size of an output in bytes; a larger one is sent as a preview.
    pub output_bytes: u64,
    /// Maximum number of text characters per output.
    pub output_chars: u64,
    /// Maximum size of a cell's result as JSON, in bytes.
    pub result_bytes: u64,
    /// Maximum number of files that are collected after a cell.
    pub files: u32,
    /// Maximum size of a collected file in bytes.
    pub collected_file_bytes: u64,
    /// Maximum duration of a cell.
    #[serde(rename = "cell_time", with = "seconds")]
    pub cell_timeout: Duration,
    /// Time between a cell's interrupt and the end of its kernel.
    #[serde(with = "seconds")]
    pub grace: Duration,
    /// Network that its code can use.
    #[serde(skip_serializing_if = "NetworkPolicy::is_none")]
    pub network: NetworkPolicy,
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
            cell_timeout: Duration::from_mins(1),
            grace: Duration::from_millis(500),
            network: NetworkPolicy::None,
        }
    }
}

/// Minimum memory of a sandbox: a kernel with a library or two.
pub const MIN_MEMORY: u64 = 32 * MIB;
/// Minimum number of processes and threads of a sandbox: a kernel and its threads.
pub const MIN_PROCESSES: u64 = 8;
/// Minimum number of open descriptors per process, which a kernel needs.
pub const MIN_OPEN_FILES: u64 = 64;

/// Default maximum timeout of a cell; the host can configure another.
pub const MAX_CELL_TIMEOUT: Duration = Duration::from_mins(5);

/// Maximum number of open descriptors of each process of a sandbox that shares a user id with
/// others. Linux counts the descriptors that a user's processes have in socket buffers, lets each
/// process add to them up to its own limit, and rejects processes with a lower limit. So this must
/// stay well below the usual 1024 of other programs.
const SHARED_OPEN_FILES: u64 = 512;

/// Maximum memory of a sandbox's sockets where Linux does not count it as the sandbox's memory. All
/// of the machine share a tenth or so of its memory for sockets.
const SOCKET_BYTES: u64 = 64 * MIB;

/// Writable memory that the image's libraries map but mostly do not use: 2.2 GiB once all have
/// worked (stacks and arenas of threads).
const UNUSED_DATA: u64 = 4 * GIB;
/// Addresses that are reserved without memory behind them: V8, which renders Altair's charts,
/// briefly takes 64.4 GiB. Beyond this, shared memory would be unlimited, because it counts as no
/// process's data.
const RESERVED_ADDRESSES: u64 = 68 * GIB;

impl Limits {
    /// Returns the first limit with which no kernel starts, and why.
    pub fn below_minimum(&self) -> Option<(&'static str, String)> {
        let limits = [
            ("memory_bytes", self.memory_bytes, MIN_MEMORY),
            ("processes", self.processes, MIN_PROCESSES),
            ("open_files", self.open_files, MIN_OPEN_FILES),
        ];
        let (name, asked, least) = limits.into_iter().find(|(_, asked, least)| asked < least)?;
        Some((
            name,
            format!("it is {asked}, and a kernel needs at least {least}"),
        ))
    }

    /// Returns the first limit of a sandbox that exceeds one of these, in words.
    pub fn above(&self, most: &Self) -> Option<String> {
        if self.network > most.network {
            return Some(format!(
                "`network` is `{}`; the maximum is `{}`",
                self.network, most.network
            ));
        }
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
            format!("`cpu_millis` is not set; the maximum is {most}")
        } else {
            format!("`{name}` is {asked}; the maximum is {most}")
        })
    }

    /// Returns whether sandboxes with these limits and those are set up in the same way.
    pub(crate) fn is_same_room(&self, other: &Self) -> bool {
        self.room(true, true, true) == other.room(true, true, true)
    }

    /// Returns the limits that the jail enforces. Per-process limits replace missing cgroups for
    /// memory or processes.
    pub(crate) fn room(&self, memory_cgroup: bool, process_cgroup: bool, own_id: bool) -> RoomLimits {
        RoomLimits {
            group: GroupLimits {
                memory_bytes: Some(self.memory_bytes),
                // One more, because a kernel's standby does not count as the user's.
                processes: Some(self.processes.saturating_add(1)),
                cpu_millis: self.cpu_millis,
                socket_bytes: (!self.network.is_none()).then(|| self.memory_bytes.min(SOCKET_BYTES)),
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
            network: self.network,
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
