//! The template as the keeper sees it: a child process, a packet socket, and its packets.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::network::NetworkPolicy;
use cellblock_jail::process::{Child, execute, spawn};
use cellblock_jail::protection::{Demand, Protection};
use cellblock_jail::seccomp::staged::CompiledFilters;
use cellblock_jail::{Error, Result, fds};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::control::{FrozenOrder, Launch};
use super::frozen::{self, FrozenPlace};

/// Environment of the template, and after it of every kernel; the image can add to it.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("HOME", "/workspace"),
    ("MPLBACKEND", "Agg"),
    ("MPLCONFIGDIR", "/tmp/.matplotlib"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("TERM", "dumb"),
];
/// Folder of the programs beside the kernel's package.
const PROGRAMS: &str = "/opt/cellblock/bin";
/// Additional variables that make forks of it cheap, and that commands do not need.
const FOR_FORKS: [&str; 3] = [
    // Python's small objects in one heap, not in arenas of their own, and the heap in large pages:
    // a fork then copies far fewer page table entries.
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
    "PYTHONMALLOC=malloc",
    // The allocator of pyarrow, which pandas imports, otherwise starts a thread, with which nothing
    // can be copied: no standby, no checkpoint, no fork.
    "JE_ARROW_MALLOC_CONF=background_thread:false",
];

/// A request for a kernel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToTemplate {
    /// Forks a kernel into a room.
    Spawn {
        /// Repeated in the response.
        token: u64,
        /// User id of the room.
        user: u32,
        /// Whether only this room has that id (supplementary groups may then be dropped).
        own_id: bool,
        /// Whether the descriptors include a rule set.
        rules: bool,
        /// Per-process limits.
        limits: cellblock_jail::confine::ProcessLimits,
        /// The room's network.
        network: NetworkPolicy,
    },
    /// Lets a thawed template continue.
    Thaw {
        /// Whether system calls of kernels are filtered.
        filtered: bool,
        /// Whether it installs the filters that they inherit.
        installs: bool,
        /// Whether a snapshot of the machine may be taken before a kernel's first message.
        snapshot: bool,
        /// Start and length of the memory that is left of its loader.
        loader: [u64; 2],
    },
    /// Turns one of its children into a kernel, so that its end is reported: a standby that has
    /// taken over.
    Adopt {
        /// Pid in the keep's pid namespace.
        pid: i32,
    },
}

/// A message from a template.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromTemplate {
    /// It waits to be written to a file.
    Still {
        /// Pid in the keep's pid namespace.
        pid: i32,
    },
    /// Its libraries are imported.
    Ready {
        /// Modules that failed to import, with the reason.
        failed: Vec<String>,
        /// Duration of the imports in milliseconds.
        import_ms: u64,
    },
    /// A kernel runs.
    Spawned {
        /// Token of the request.
        token: u64,
        /// Pid in the keep's pid namespace.
        pid: i32,
    },
    /// A kernel could not be forked.
    Failed {
        /// Token of the request.
        token: u64,
        /// The reason.
        error: String,
    },
    /// The interpreter failed to start.
    Broken {
        /// The reason, with the whole chain of causes.
        error: String,
    },
    /// A kernel ended.
    Ended {
        /// Pid in the keep's pid namespace.
        pid: i32,
        /// Raw wait status.
        status: i32,
    },
}

/// A running template.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) child: Child,
    pub(super) socket: OwnedFd,
}

impl Template {
    /// Starts the image's Python. With `frozen`, it waits to be written to a file once it has
    /// imported the libraries.
    ///
    /// That of a root filesystem is somebody else's program: it has the filters before it runs, and
    /// cannot leave them out.
    pub(super) fn start(launch: &Launch, filters: &CompiledFilters, frozen: bool) -> Result<Self> {
        let (socket, theirs) = fds::packet_pair()?;
        let program = launch.image.program();
        let program = program.to_string_lossy();
        let modules = serde_json::to_string(&launch.preload)?;
        let script = "import gc, json, sys; gc.disable(); sys.path[:] = ['/opt/cellblock', *filter(None, \
                      sys.path)]; from cellblock_kernel.boot import template; template.run(3, \
                      *map(json.loads, sys.argv[1:]))";
        let filtered = launch.demands.of(Protection::Seccomp) != Demand::Disabled;
        let inherits = filtered && launch.image.is_root;
        let installs = serde_json::to_string(&(filtered && !inherits))?;
        let filtered = serde_json::to_string(&filtered)?;
        let snapshot = serde_json::to_string(&launch.snapshot)?;
        let frozen = serde_json::to_string(&frozen)?;
        let flags = launch.image.flags().iter().copied();
        let arguments: Vec<_> = std::iter::once(&*program)
            .chain(flags)
            .chain([script, &modules, &filtered, &installs, &snapshot, &frozen])
            .map(c_string)
            .collect();
        let environment = command_environment(launch);
        let environment: Vec<_> = environment
            .iter()
            .map(String::as_str)
            .chain(FOR_FORKS)
            .map(c_string)
            .collect();
        let child = spawn(0, None, || {
            fds::close_all_but(&[theirs.as_raw_fd()])?;
            fds::place(theirs, 3)?;
            if inherits {
                filters.install_inherited()?;
            }
            let error = execute(&arguments[0], &arguments, &environment);
            let action = match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    "start the interpreter (is the image's directory mounted `noexec`?)"
                }
                _ => "start the interpreter",
            };
            let broken = Err::<(), _>(error).during_on(action, &*program);
            broken.inspect_err(|error| report_broken(&own_socket(), error))
        })
        .during("start the template")?;
        Ok(Self { child, socket })
    }

    /// Makes a template from a frozen one.
    pub(super) fn thaw(launch: &Launch, place: &FrozenPlace) -> Result<Self> {
        let (socket, theirs) = fds::packet_pair()?;
        let filtered = launch.demands.of(Protection::Seccomp) != Demand::Disabled;
        let first = ToTemplate::Thaw {
            filtered,
            installs: filtered,
            snapshot: launch.snapshot,
            loader: frozen::LOADER,
        };
        fds::send(&socket, &first, &[])?;
        let is_draft = matches!(launch.frozen, Some(FrozenOrder::Freeze { .. }));
        let child = spawn(0, None, || {
            fds::close_all_but(&[theirs.as_raw_fd()])?;
            fds::place(theirs, 3)?;
            let error = frozen::become_frozen(place, is_draft);
            let socket = own_socket();
            // Linux would drop the report if the other end's message was not read.
            let _first = fds::receive::<IgnoredAny>(&socket);
            report_broken(&socket, &error);
            Err(error)
        })
        .during("thaw the template")?;
        Ok(Self { child, socket })
    }
}

/// Returns the control socket of a template that does not start.
fn own_socket() -> OwnedFd {
    // SAFETY: the socket was just placed there, and nothing else in this process uses it.
    unsafe { OwnedFd::from_raw_fd(3) }
}

/// Sends why the calling process does not become a template.
fn report_broken(socket: &OwnedFd, error: &Error) {
    let told = FromTemplate::Broken { error: chain(error) };
    let _ = fds::send(socket, &told, &[]);
}

/// Returns the environment of a room's commands.
pub(super) fn command_environment(launch: &Launch) -> Vec<String> {
    let fixed = ENVIRONMENT.map(|(name, value)| (name, value.to_owned()));
    let image = &launch.image;
    image.environment(image.inside(), PROGRAMS, &fixed)
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("neither JSON nor our own text has a NUL")
}
