//! The packets between the host and its launcher. Each is a JSON document; descriptors are attached
//! to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cellblock_jail::cgroup::Usage;
use cellblock_jail::ids::KeepIds;
use cellblock_jail::protection::{Demands, Report};
use cellblock_jail::room::RoomLimits;
use cellblock_protocol::Obstacle;
use serde::{Deserialize, Serialize};

use super::frozen::FrozenPlace;

/// The files of an image, and how its Python is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImageTree {
    /// The host's directory.
    pub directory: PathBuf,
    /// Whether it is a whole root filesystem. Otherwise it is mounted at `/opt/python` of a tree
    /// with the machine's programs.
    pub is_root: bool,
    /// Path of the interpreter below the directory.
    pub interpreter: String,
    /// A directory below it that the loader must search, if any.
    pub library_path: Option<String>,
    /// Whether the interpreter can leave the directory of a script out of its search path, as
    /// Python can since 3.11.
    pub has_safe_path: bool,
    /// Environment of kernels and commands, except for what every sandbox sets.
    pub environment: BTreeMap<String, String>,
}

impl ImageTree {
    /// Describes an interpreter with its packages, which is mounted at `/opt/python`.
    pub fn python(directory: PathBuf, interpreter: impl Into<String>) -> Self {
        Self {
            directory,
            is_root: false,
            interpreter: interpreter.into(),
            library_path: None,
            has_safe_path: true,
            environment: BTreeMap::new(),
        }
    }

    /// Returns the path at which a sandbox sees it.
    pub fn inside(&self) -> &'static Path {
        Path::new(if self.is_root { "/" } else { "/opt/python" })
    }

    /// Returns the interpreter's path in a sandbox.
    pub fn program(&self) -> PathBuf {
        self.inside().join(&self.interpreter)
    }

    /// Returns how commands of a sandbox call the interpreter. Without namespaces, it has another
    /// path, and is found along `PATH`.
    pub fn command(&self) -> PathBuf {
        match Path::new(&self.interpreter).file_name() {
            Some(name) if !self.is_root => name.into(),
            _ => self.program(),
        }
    }

    /// Returns the interpreter's arguments for a program in its `-c` form.
    pub(super) fn flags(&self) -> &'static [&'static str] {
        if self.has_safe_path {
            &["-s", "-P", "-c"]
        } else {
            &["-s", "-c"]
        }
    }

    /// Returns the environment of a process that sees the image at `at`, and programs beside the
    /// kernel's package at `programs`. Variables in `fixed` are those that every sandbox sets.
    pub(super) fn environment(&self, at: &Path, programs: &str, fixed: &[(&str, String)]) -> Vec<String> {
        const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
        let mut variables = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
        variables.extend(self.environment.clone());
        let path = match variables.get("PATH") {
            Some(path) => path.clone(),
            None if self.is_root => PATH.to_owned(),
            None => format!("{}/bin:/usr/bin:/bin", at.display()),
        };
        variables.insert("PATH".to_owned(), format!("{programs}:{path}"));
        if let Some(below) = &self.library_path {
            variables.insert("LD_LIBRARY_PATH".to_owned(), at.join(below).display().to_string());
        }
        variables.extend(
            fixed
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        variables
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }
}

/// The first packet: the launcher's configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Id map of the keep.
    pub ids: KeepIds,
    /// The policy's demand for each protection.
    pub demands: Demands,
    /// The image.
    pub image: ImageTree,
    /// The host's directory of requirement layers; mounted at `/opt/layers`.
    pub layers: Option<PathBuf>,
    /// The host's directory with the kernel's bytecode for this image.
    pub bytecode: Option<PathBuf>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// The host's parent directory for rooms without namespaces.
    pub scratch: PathBuf,
    /// Whether this machine is one of gVisor's, whose wall replaces the protections that its kernel
    /// lacks. Its first kernel imports `preload` and then waits for the snapshot.
    #[serde(default)]
    pub walled: bool,
    /// Whether a snapshot of this machine is taken before its kernels have a first message: each
    /// seeds its generators when that arrives.
    #[serde(default)]
    pub snapshot: bool,
    /// Frozen template of the image, if one is used or made.
    #[serde(default)]
    pub frozen: Option<FrozenOrder>,
}

/// Use of a frozen template.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenOrder {
    /// The template is thawed; if that fails, it imports `preload`.
    Thaw(FrozenPlace),
    /// A template that imports `preload` is frozen, and the launcher ends.
    Freeze {
        /// Place of its files.
        place: FrozenPlace,
        /// Whether everything else on the machine comes first, because nobody waits for it.
        yields: bool,
    },
}

impl FrozenOrder {
    /// Returns the place of its files.
    pub const fn place(&self) -> &FrozenPlace {
        match self {
            Self::Thaw(place) | Self::Freeze { place, .. } => place,
        }
    }
}

/// A packet from the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LauncherRequest {
    /// Repeated in the reply.
    pub id: u64,
    /// Requested operation.
    pub operation: Operation,
}

/// An operation that the host requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Creates a room. Descriptor: the guest's end of its channel.
    CreateRoom {
        /// Name, unique within the launcher.
        room: String,
        /// Number that determines the room's user id.
        slot: u32,
        /// Limits of the room.
        limits: RoomLimits,
    },
    /// Forks a kernel into a room. Descriptors: the kernel's ends of its channel, stdout, stderr
    /// and its spare channel.
    StartKernel {
        /// The room.
        room: String,
    },
    /// Turns a process that is already in a room into its kernel: a standby that has taken over.
    AdoptKernel {
        /// The room.
        room: String,
        /// Its pid in the room.
        pid: u32,
    },
    /// Returns the pidfd of a process in a room.
    FindProcess {
        /// The room.
        room: String,
        /// Its pid in the room.
        pid: u32,
    },
    /// Moves a kept copy of a kernel into the fresh kernel of another room, which continues as the
    /// copy or ends. Descriptors: the `pagemap` files of both, if the host may see physical
    /// addresses.
    MoveKernel {
        /// The room of the copy.
        room: String,
        /// The copy's pid in its room.
        pid: u32,
        /// Number of the socket on which it waits.
        socket: u32,
        /// The other room.
        into: String,
        /// The fresh kernel's pid in that room.
        target: u32,
    },
    /// Mounts a file over an existing one in a room's `/tmp/data`. Descriptor: the detached mount.
    MountData {
        /// The room.
        room: String,
        /// Name below `/tmp/data`.
        name: String,
    },
    /// Ends everything in a room.
    DestroyRoom {
        /// The room.
        room: String,
    },
    /// Returns a room's resource usage.
    Usage {
        /// The room.
        room: String,
    },
    /// Sets the host name of the rooms that are created afterward.
    NameHost {
        /// The name.
        name: String,
    },
}

/// A packet to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherEvent {
    /// The keep is ready. Kernels can be requested; they start once the template has imported its
    /// libraries.
    Started {
        /// State of each protection.
        report: Report,
    },
    /// The launcher could not start.
    Refused {
        /// The reason, with the whole chain of causes.
        error: String,
        /// Whether a protection is missing, rather than an operation having failed.
        missing_protection: bool,
    },
    /// The template has imported its libraries.
    TemplateReady {
        /// Modules that failed to import, with the reason.
        failed: Vec<String>,
        /// Duration of the imports in milliseconds.
        import_ms: u64,
    },
    /// The frozen template could not be thawed; another template imports the libraries.
    NotThawed {
        /// The reason.
        reason: String,
    },
    /// The template ended; its forked kernels continue.
    TemplateEnded,
    /// Every template ended immediately after its start; another one is started for the next
    /// kernel.
    TemplateFailed {
        /// The last template's error.
        reason: String,
    },
    /// The response to a request.
    Reply {
        /// Id of the request.
        id: u64,
        /// The result. `CreateRoom` attaches the guest's pidfd, `FindProcess`, `StartKernel` and
        /// `AdoptKernel` the kernel's.
        result: Result<LauncherReply, String>,
    },
    /// A kernel ended.
    KernelEnded {
        /// Its number, from [`LauncherReply::Kernel`].
        kernel: u64,
        /// Raw wait status.
        status: i32,
    },
}

/// A successful response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherReply {
    /// The operation is complete.
    Done,
    /// A kernel was started.
    Kernel {
        /// Number within the launcher.
        kernel: u64,
    },
    /// Resource usage of a room.
    Usage(Usage),
    /// A kernel was not moved, because of something that it has.
    Immovable(Obstacle),
}
