//! Confining the calling process for good: the last steps before it runs or serves untrusted code.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use serde::{Deserialize, Serialize};

use crate::error::{Result, SyscallResult};
use crate::ids::ROOM_USER;
use crate::walled;

/// Per-process limits, set with `setrlimit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Maximum number of open descriptors.
    pub open_files: u64,
    /// Maximum size of a file in bytes.
    pub file_bytes: u64,
    /// Maximum private writable memory in bytes; set only if no cgroup limits memory.
    pub data: Option<u64>,
    /// Maximum address space in bytes, including reserved memory; set only if no cgroup limits
    /// memory.
    pub address_space: Option<u64>,
    /// Maximum number of processes of the sandbox's user; set only if no cgroup limits them.
    pub processes: Option<u64>,
}

/// Maximum number of pending signals and of timers, which need one each. All sandboxes and the
/// host's user share one limit, so each sandbox gets only a small part of it.
const PENDING_SIGNALS: u64 = 1024;

/// Not 0: if the machine pipes core dumps to a program (a `core_pattern` that starts with `|`),
/// Linux does so despite a limit of 0, and only skips it for a limit of 1 (fs/coredump.c). No core
/// file fits into one byte.
const NO_CORE: u64 = 1;

impl ProcessLimits {
    /// Sets the limits on the calling process. A lower limit of the host stays: it cannot be raised
    /// and is stricter.
    pub fn apply(&self) -> Result<()> {
        let both = |value: u64| Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        let lower = |resource, value: u64| {
            let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            setrlimit(resource, both(value.min(allowed)))
        };
        lower(Resource::Nofile, self.open_files).during("limit open files")?;
        lower(Resource::Fsize, self.file_bytes).during("limit file sizes")?;
        match setrlimit(Resource::Sigpending, both(PENDING_SIGNALS)) {
            // gVisor has no such limit, and no other sandbox is in the machine.
            Err(rustix::io::Errno::PERM) if walled::is_declared() => {}
            limited => limited.during("limit waiting signals")?,
        }
        setrlimit(Resource::Core, both(NO_CORE)).during("switch off core dumps")?;
        if let Some(bytes) = self.data {
            lower(Resource::Data, bytes).during("limit memory")?;
        }
        if let Some(bytes) = self.address_space {
            lower(Resource::As, bytes).during("limit address space")?;
        }
        if let Some(processes) = self.processes {
            lower(Resource::Nproc, processes).during("limit processes")?;
        }
        Ok(())
    }
}

/// Raises the calling process's limit of open files to its maximum: a keep holds a dozen
/// descriptors per room, and login sessions start with a limit of about a thousand.
pub fn open_many_files() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).during("raise the limit of open files")
}

/// Becomes the room's user. Capabilities remain until [`crate::caps::drop_all`]: id 0 is not
/// mapped, so the kernel does not drop them here.
pub fn become_room_user() -> Result<()> {
    use rustix::process::{Gid, Uid};
    let (uid, gid) = (Uid::from_raw(ROOM_USER), Gid::from_raw(ROOM_USER));
    rustix::thread::set_thread_res_gid(gid, gid, gid).during("become the room's group")?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).during("become the room's user")
}

/// Hides the calling process from `ptrace`, `/proc/PID/mem` and core dumps, also from processes
/// with its own user id.
pub fn hide() -> Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during("make the guest undumpable")
}
