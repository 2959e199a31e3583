//! Locations of a machine's files for the host and for Firecracker, which sees the same paths in every
//! machine: a snapshot names its disk and its socket by path.
//!
//! ```text
//! root:           <machine>/jail/<program>/<id>/root    is   /              the jailer changes its root
//!                 the snapshot's directory              is   /snapshot
//!                 that of another machine's state       is   /saved
//! ordinary user:  <machine>                             is   <home>/microvm/firecracker/machine
//!                 the snapshot's directory              is   <home>/microvm/firecracker/snapshot
//!                 that of another machine's state       is   <home>/microvm/firecracker/saved
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
const SAVED: &str = "saved";
/// Directory in which a machine that continues writes its state.
const OWN: &str = "state";

/// Number of jails of this process, for their user ids.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The places of one machine's files.
pub(super) struct Stage {
    /// The machine's directory, as the host sees it.
    host: PathBuf,
    /// The machine's directory and that of the snapshot, as Firecracker sees them.
    machine: PathBuf,
    snapshot: PathBuf,
    /// The directory of the state that it goes on with, if that is another machine's.
    saved: Option<PathBuf>,
    /// The user as whom Firecracker runs in its jail.
    user: Option<u32>,
    pub(super) mounts: Vec<MachineMount>,
    /// The command that starts Firecracker.
    pub(super) command: Vec<String>,
}

impl Stage {
    /// Prepares the directories of a machine of a snapshot. A template writes to the directory of
    /// its snapshot.
    pub(super) fn set(
        vmm: &Firecracker,
        home: &Path,
        place: &MachinePlace,
        snapshot: &Path,
        writable: bool,
    ) -> io::Result<Self> {
        let program = vmm.path.display().to_string();
        let Some(jailer) = &vmm.jailer else {
            let above = home.join("microvm/firecracker");
            let (machine, inside) = (above.join("machine"), above.join(SNAPSHOT));
            for directory in [&machine, &inside, &place.path.join(OWN)] {
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
                saved: None,
                user: None,
                command: [&program, "--id", &place.id, "--api-sock", &socket]
                    .map(str::to_owned)
                    .into(),
            });
        };
        let base = place.path.join("jail");
        let name = vmm.path.file_name().unwrap_or_default();
        let host = base.join(name).join(&place.id).join("root");
        let (target, own) = (host.join(SNAPSHOT), host.join(OWN));
        private(&target)?;
        private(&own)?;
        let user = user();
        chown(&own, Some(user), Some(user))?;
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
            saved: None,
            user: Some(user),
            mounts: vec![mount(snapshot, target, writable)],
            command: command.into(),
        })
    }

    /// Shows it the state of another machine.
    pub(super) fn show(&mut self, saved: &Path) -> io::Result<()> {
        let inside = self.snapshot.with_file_name(SAVED);
        let target = if self.user.is_some() {
            // Its files are readable, and the directories above it are private.
            fs::set_permissions(saved, Permissions::from_mode(0o711))?;
            self.host.join(SAVED)
        } else {
            inside.clone()
        };
        private(&target)?;
        self.mounts.push(mount(saved, target, false));
        self.saved = Some(inside);
        Ok(())
    }

    /// Returns the snapshot's files, as Firecracker sees them.
    pub(super) fn files(&self) -> Files {
        Files::of(&self.snapshot)
    }

    /// Returns the files that the machine goes on with.
    pub(super) fn origin_files(&self) -> Files {
        Files::of(self.saved.as_ref().unwrap_or(&self.snapshot))
    }

    /// Returns the files to which the machine writes its own state.
    pub(super) fn own_files(&self) -> Files {
        Files::of(&self.machine.join(OWN))
    }

    /// Moves those files out of the machine's directory, where a hostile machine may have put links
    /// in their place.
    pub(super) fn move_own(&self, directory: &Path) -> io::Result<()> {
        let (from, to) = (Files::of(&self.host.join(OWN)), Files::of(directory));
        for (from, to) in [(from.state, to.state), (from.memory, to.memory)] {
            fs::rename(from, &to)?;
            if !fs::symlink_metadata(&to)?.is_file() {
                return Err(io::Error::other(format!("`{}` is not a file", to.display())));
            }
        }
        self.seal(directory)
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

    /// Takes finished files from the jail's user; those of all jails can read them.
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

fn mount(source: &Path, target: PathBuf, writable: bool) -> MachineMount {
    MachineMount {
        source: source.to_owned(),
        target,
        writable,
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_machines_state_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (host, saved, other) = (
            folder.path().join("machine"),
            folder.path().join("saved"),
            folder.path().join("other"),
        );
        let stage = Stage {
            machine: host.clone(),
            snapshot: folder.path().join(SNAPSHOT),
            saved: None,
            user: None,
            mounts: Vec::new(),
            command: Vec::new(),
            host,
        };
        let own = stage.own_files();
        fs::create_dir_all(stage.host.join(OWN)).unwrap();
        fs::create_dir(&saved).unwrap();
        fs::write(&other, "not the machine's").unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        fs::write(&own.state, "state").unwrap();
        symlink(&other, &own.memory).unwrap();
        let error = stage.move_own(&saved).unwrap_err().to_string();
        assert!(error.contains("is not a file"), "{error}");
        assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(saved.join("memory")).unwrap();
        fs::write(&own.state, "state").unwrap();
        fs::write(&own.memory, "memory").unwrap();
        stage.move_own(&saved).unwrap();
        assert_eq!(fs::read_to_string(Files::of(&saved).memory).unwrap(), "memory");
    }
}
