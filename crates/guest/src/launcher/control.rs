//! The packets between the host and its launcher. Each is a JSON document; descriptors travel beside it.

use std::path::PathBuf;

use cellblock_jail::cgroup::Usage;
use cellblock_jail::ids::KeepIds;
use cellblock_jail::protection::{Demands, Report};
use cellblock_jail::room::RoomLimits;
use serde::{Deserialize, Serialize};

/// The first packet: what to launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Id map of the keep.
    pub ids: KeepIds,
    /// What the policy asks of each protection.
    pub demands: Demands,
    /// The image's directory of Python on the host; appears at `/opt/python`.
    pub python: PathBuf,
    /// The interpreter's name below `/opt/python/bin`.
    pub interpreter: String,
    /// A directory below `python` that the loader must search, if there is one.
    pub library_path: Option<String>,
    /// The host's directory of requirement layers; appears at `/opt/layers`.
    pub layers: Option<PathBuf>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// The host's directory below which rooms without namespaces have theirs.
    pub scratch: PathBuf,
}

/// A packet from the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Comes back in the reply.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
}

/// What the host asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Makes a room. Descriptor: the guest's end of its channel.
    CreateRoom {
        /// Its name, unique within the launcher.
        room: String,
        /// Selects the room's user id.
        slot: u32,
        /// Its limits.
        limits: RoomLimits,
    },
    /// Forks a kernel into a room. Descriptors: the kernel's ends of its channel, stdout, stderr and its spare channel.
    StartKernel {
        /// The room.
        room: String,
    },
    /// Takes a process that is in a room already for a kernel: a standby that has taken over.
    AdoptKernel {
        /// The room.
        room: String,
        /// Its number in the room.
        pid: u32,
    },
    /// Mounts a file over one that is in a room's `/tmp/data`. Descriptor: the detached mount.
    MountData {
        /// The room.
        room: String,
        /// The name below `/tmp/data`.
        name: String,
    },
    /// Ends everything in a room.
    DestroyRoom {
        /// The room.
        room: String,
    },
    /// Asks what a room has used.
    Usage {
        /// The room.
        room: String,
    },
}

/// A packet to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The keep stands. Kernels may be asked for, and start once the template has its libraries.
    Started {
        /// What is in force.
        report: Report,
    },
    /// The launcher could not start.
    Refused {
        /// Why, with the whole chain of causes.
        error: String,
        /// Whether a protection is missing, rather than something failed.
        missing_protection: bool,
    },
    /// The template has imported its libraries.
    TemplateReady {
        /// Modules that could not be imported, with the reason.
        failed: Vec<String>,
        /// How long the imports took.
        import_ms: u64,
    },
    /// The template ended; kernels that it had forked live on.
    TemplateEnded,
    /// Every template ended right after its start; the next one is started for the next kernel.
    TemplateFailed {
        /// What the last one said of it.
        reason: String,
    },
    /// The answer to a request.
    Reply {
        /// The request's id.
        id: u64,
        /// The result. `CreateRoom` has the guest's pidfd beside it, `StartKernel` and `AdoptKernel` the kernel's.
        result: Result<Answer, String>,
    },
    /// A kernel ended.
    KernelEnded {
        /// Its number, from [`Answer::Kernel`].
        kernel: u64,
        /// Its raw wait status.
        status: i32,
    },
}

/// What a request was answered with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done.
    Done,
    /// A kernel was started.
    Kernel {
        /// Its number within the launcher.
        kernel: u64,
    },
    /// What a room has used.
    Usage(Usage),
}
