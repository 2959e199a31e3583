//! Where a machine's files are for the host and for Firecracker, which sees the same paths in every machine: a snapshot
//! names its disk and its socket by path.
//!
//! ```text
//! root:           <machine>/jail/<program>/<id>/root    is   /              the jailer changes its root
//!                 the snapshot's directory              is   /snapshot
//! ordinary user:  <machine>                             is   <home>/microvm/firecracker/machine
//!                 the snapshot's directory              is   <home>/microvm/firecracker/snapshot
//! ```

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use cellblock_guest::machine::MachineMount;
use tokio::net::UnixStream;

use super::Firecracker;
use crate::microvm::files::Files;
use crate::places::MachinePlace;

/// The first user id of jails, above those of rooms.
const FIRST_USER: u32 = 0x7100_0000;
/// Number of user ids for the machines of one process, and of processes before ids repeat.
const USERS: u32 = 1 << 12;
const PROCESSES: u32 = 1 << 12;
/// Names in the machine's directory.
const API: &str = "api";
const STREAM: &str = "vsock";
const SNAPSHOT: &str = "snapshot";

/// Number of jails of this process, for their user ids.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The places of one machine's files.
pub(super) struct Stage {
    /// The machine's directory, as the host sees it.
    host: PathBuf,
    /// The machine's directory and that of the snapshot, as Firecracker sees them.
    machine: PathBuf,
    snapshot: PathBuf,
    /// The user as whom Firecracker runs in its jail.
    user: Option<u32>,
    pub(super) mounts: Vec<MachineMount>,
    /// The command that starts Firecracker.
    pub(super) command: Vec<String>,
}

impl Stage {
    /// Prepares the directories of a machine. A template writes to the directory of its snapshot.
    pub(super) fn set(
        vmm: &Firecracker,
        home: &Path,
        place: &MachinePlace,
        snapshot: &Path,
        writable: bool,
    ) -> io::Result<Self> {
        let mount = |source: &Path, target: PathBuf, writable| MachineMount {
            source: source.to_owned(),
            target,
            writable,
        };
        let program = vmm.path.display().to_string();
        let Some(jailer) = &vmm.jailer else {
            let above = home.join("microvm/firecracker");
            let (machine, inside) = (above.join("machine"), above.join(SNAPSHOT));
            for directory in [&machine, &inside] {
                private(directory)?;
            }
            let socket = machine.join(API).display().to_string();
            return Ok(Self {
                host: place.path.clone(),
                mounts: vec![
                    mount(snapshot, inside.clone(), writable),
                    mount(&place.path, machine.clone(), true),
                ],
                machine,
                snapshot: inside,
                user: None,
                command: [&program, "--id", &place.id, "--api-sock", &socket]
                    .map(str::to_owned)
                    .into(),
            });
        };
        let base = place.path.join("jail");
        let name = vmm.path.file_name().unwrap_or_default();
        let host = base.join(name).join(&place.id).join("root");
        let target = host.join(SNAPSHOT);
        private(&target)?;
        let user = user();
        if writable {
            chown(snapshot, Some(user), Some(user))?;
        }
        fs::set_permissions(snapshot, Permissions::from_mode(0o711))?;
        let (id, jailer) = (user.to_string(), jailer.display().to_string());
        let command = [
            &*jailer,
            "--id",
            &place.id,
            "--exec-file",
            &program,
            "--uid",
            &id,
            "--gid",
            &id,
            "--chroot-base-dir",
            &base.display().to_string(),
            "--",
            "--api-sock",
            "/api",
        ]
        .map(str::to_owned);
        Ok(Self {
            host,
            machine: "/".into(),
            snapshot: Path::new("/").join(SNAPSHOT),
            user: Some(user),
            mounts: vec![mount(snapshot, target, writable)],
            command: command.into(),
        })
    }

    /// Returns the snapshot's files, as Firecracker sees them.
    pub(super) fn files(&self) -> Files {
        Files::of(&self.snapshot)
    }

    /// Returns the path of the socket for streams, as Firecracker sees it.
    pub(super) fn stream(&self) -> PathBuf {
        self.machine.join(STREAM)
    }

    /// Connects to Firecracker's API.
    pub(super) async fn connect_api(&self) -> io::Result<UnixStream> {
        connect(&self.host, API).await
    }

    /// Connects to Firecracker's socket for streams.
    pub(super) async fn connect_stream(&self) -> io::Result<UnixStream> {
        connect(&self.host, STREAM).await
    }

    /// Takes the files of a finished snapshot from the jail's user; those of all jails can read them.
    pub(super) fn seal(&self, directory: &Path) -> io::Result<()> {
        if self.user.is_some() {
            own(directory)?;
            for entry in fs::read_dir(directory)? {
                own(&entry?.path())?;
            }
        }
        readable(directory)
    }
}

/// Lets every user who reaches the directory read its files.
pub(super) fn readable(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        fs::set_permissions(entry?.path(), Permissions::from_mode(0o444))?;
    }
    Ok(())
}

fn own(path: &Path) -> io::Result<()> {
    chown(path, Some(0), Some(0))
}

fn user() -> u32 {
    let process = std::process::id() % PROCESSES;
    FIRST_USER + process * USERS + MADE.fetch_add(1, Ordering::Relaxed) % USERS
}

/// Connects to a socket by its directory: the whole path can be longer than an address permits.
async fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    const PATH: i32 = rustix::fs::OFlags::PATH.bits().cast_signed();
    let opened: File = OpenOptions::new().read(true).custom_flags(PATH).open(directory)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd())).await
}

fn private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
