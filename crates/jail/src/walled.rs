//! Rooms inside a machine of gVisor, whose kernel has system call filters and no namespaces,
//! Landlock, process handles or `openat2`. The wall around the machine replaces them.
//!
//! A process declares this once, before it starts any other; its children inherit the declaration.
//! Without it, a missing mechanism stays an error.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive, mount_remount};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result, SyscallResult};
use crate::fds;
use crate::ids::{KeepIds, ROOM_USER};
use crate::mounts::DiskLimits;
use crate::process::Child;

static DECLARED: AtomicBool = AtomicBool::new(false);

/// A file that only gVisor's kernel has.
const SENTRY: &str = "/proc/sentry-meminfo";
/// Number of user ids for rooms.
const IDS: u32 = 64;

/// Declares that a wall surrounds this machine. Returns an error if gVisor's kernel does not run it.
pub fn declare() -> Result<()> {
    if !Path::new(SENTRY).exists() {
        return Err(Error::Child(format!(
            "rooms without protections are only allowed inside gVisor, and this machine has no `{SENTRY}`; \
             do not run `cellblock inside --walled` yourself"
        )));
    }
    DECLARED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Returns whether this process has declared that a wall surrounds it.
pub fn is_declared() -> bool {
    DECLARED.load(Ordering::Relaxed)
}

/// Returns the user ids of rooms in a machine, which has no others to avoid.
pub fn ids() -> KeepIds {
    KeepIds::Range {
        base: ROOM_USER - 1,
        count: IDS + 1,
    }
}

/// The parent's end of a socket that replaces a process handle: a byte that arrives is a signal for
/// the process, and the socket is closed when the process has ended.
#[derive(Debug)]
pub struct Leash(OwnedFd);

impl Leash {
    /// Returns the parent's end, and the one to hand out.
    pub fn new() -> Result<(Self, OwnedFd)> {
        let (ours, theirs) = fds::stream_pair()?;
        Ok((Self(ours), theirs))
    }

    /// Passes the next signal on to a child that has not been reaped, so that its pid is not reused.
    /// Returns false once the other end is closed.
    pub fn pull(&self, pid: i32) -> bool {
        let mut number = [0];
        match rustix::io::read(&self.0, &mut number) {
            Ok(0) => false,
            Ok(_) => {
                let signal = Signal::from_named_raw(number[0].into());
                if let (Some(signal), Some(pid)) = (signal, Pid::from_raw(pid)) {
                    let _ = kill_process(pid, signal);
                }
                true
            }
            Err(error) => error == rustix::io::Errno::INTR || error == rustix::io::Errno::AGAIN,
        }
    }
}

impl AsFd for Leash {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes an image's root filesystem the root of this process, with what rooms need of the machine around it.
pub fn enter_root(directory: &Path) -> Result<()> {
    for shared in [
        "/dev",
        "/proc",
        "/sys",
        "/run",
        "/tmp",
        "/workspace",
        "/opt/layers",
    ] {
        let target = directory.join(shared.trim_start_matches('/'));
        mount_bind_recursive(shared, &target).during_on("bind", &target)?;
    }
    for (name, _) in crate::mounts::system_files() {
        let (source, target) = (Path::new("/etc").join(name), directory.join("etc").join(name));
        if target.is_file() {
            mount_bind(&source, &target).during_on("bind", &target)?;
        }
    }
    rustix::process::chroot(directory).during_on("enter", directory)?;
    rustix::process::chdir("/").during("enter the root")
}

/// Mounts the file systems of a room at their usual paths, over those of a room before it.
pub fn mount_room(limits: &DiskLimits, user: Option<u32>) -> Result<()> {
    let owner = owner(user);
    // gVisor does not limit the number of files.
    let none = MountFlags::empty();
    memory(
        "/workspace",
        &format!("mode=700,{owner},size={}", limits.bytes),
        none,
    )?;
    crate::mounts::show_home()?;
    memory("/tmp", &format!("mode=1777,{owner},size={}", limits.bytes), none)?;
    memory(
        "/dev/shm",
        &format!("mode=1777,{owner},size={}", limits.shm_bytes),
        MountFlags::NOEXEC,
    )
}

/// Mounts a room's `/tmp/data`, which is read-only by that path and can be written through `source`.
pub fn mount_data(source: &Path, limits: &DiskLimits, user: Option<u32>) -> Result<()> {
    let options = format!("mode=755,{},size={}", owner(user), limits.data_bytes);
    memory(source, &options, MountFlags::NOEXEC)?;
    let data = Path::new("/tmp/data");
    mount_bind(source, data).during_on("bind", data)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount(data, flags, "").during_on("make read-only", data)
}

fn owner(user: Option<u32>) -> String {
    let user = user.unwrap_or_default();
    format!("uid={user},gid={user}")
}

fn memory(at: impl AsRef<Path>, options: &str, more: MountFlags) -> Result<()> {
    let at = at.as_ref();
    let options = CString::new(options).map_err(|_| Error::Child("mount options contain a NUL".into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | more;
    mount("tmpfs", at, "tmpfs", flags, Some(options.as_c_str())).during_on("mount a tmpfs at", at)
}

/// Returns the handle of a child to hand out, and the leash to obey if that replaces it.
pub fn handle(child: &Child) -> Result<(Option<Leash>, OwnedFd)> {
    if let Some(pidfd) = &child.pidfd {
        let copy = rustix::io::fcntl_dupfd_cloexec(pidfd, 3).during("duplicate a process handle")?;
        return Ok((None, copy));
    }
    let (leash, handle) = Leash::new()?;
    Ok((Some(leash), handle))
}

/// Signals a process through its handle, or through the leash that replaces it inside a wall.
pub fn signal(handle: impl AsFd, signal: Signal) {
    if !is_declared() {
        let _ = rustix::process::pidfd_send_signal(handle, signal);
        return;
    }
    let number = u8::try_from(signal.as_raw()).unwrap_or_default();
    let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
    let _ = rustix::net::send(handle, &[number], flags);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_cannot_be_declared_outside_gvisor() {
        if Path::new(SENTRY).exists() {
            return;
        }
        let error = declare().unwrap_err().to_string();
        assert!(error.contains("only allowed inside gVisor"), "{error}");
        assert!(!is_declared());
    }

    #[test]
    fn a_leash_passes_signals_on_and_ends_with_its_owner() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (leash, theirs) = Leash::new().unwrap();
        rustix::io::write(&theirs, &[15]).unwrap();
        assert!(leash.pull(child.id().cast_signed()));
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        drop(leash);
        assert_eq!(rustix::io::read(&theirs, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn rooms_have_the_usual_user() {
        assert_eq!(ids().host_room(0), Some(ROOM_USER));
    }
}
