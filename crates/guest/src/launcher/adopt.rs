//! Finding a process of a room from outside by its pid inside.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use cellblock_jail::error::SyscallResult;
use cellblock_jail::room::Room;
use cellblock_jail::{Error, Result};
use rustix::ioctl::{Opcode, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// `NS_GET_TGID_FROM_PIDNS` of `linux/nsfs.h`, since Linux 6.11: the number here of a process that
/// has a number in a pid namespace.
const NUMBER_HERE: Opcode = opcode::read::<libc::c_int>(0xb7, 0x7);

/// Returns the process's pid in the keep, and its pidfd. The room's first process is never
/// returned.
pub(super) fn find(room: &Room, inside: u32) -> Result<(i32, OwnedFd)> {
    let missing = || Error::Child(format!("the room has no process {inside}"));
    let first = room.namespaces.first().ok_or_else(missing)?;
    let namespace = rustix::fs::fstat(first.as_fd()).during("look at the room's pid namespace")?;
    let is_it = |pid: i32| {
        let own = rustix::fs::stat(format!("/proc/{pid}/ns/pid"));
        own.is_ok_and(|own| (own.st_dev, own.st_ino) == (namespace.st_dev, namespace.st_ino))
            && innermost(pid) == Some(inside)
    };
    if inside <= 1 {
        return Err(missing());
    }
    // An older Linux is searched for it, which takes longer the more rooms there are.
    let pid = match number_here(first, inside) {
        Some(pid) => pid,
        None => search(is_it)?.ok_or_else(missing)?,
    };
    let number = Pid::from_raw(pid).ok_or_else(missing)?;
    let pidfd = pidfd_open(number, PidfdFlags::empty()).during("open the standby")?;
    // Checked once it is open, because the pid could have been reused before.
    if is_it(pid) {
        Ok((pid, pidfd))
    } else {
        Err(missing())
    }
}

/// Asks Linux for the number.
fn number_here(namespace: &OwnedFd, inside: u32) -> Option<i32> {
    // SAFETY: the call takes a descriptor, which the borrow keeps open, and a number.
    let number = unsafe { libc::syscall(libc::SYS_ioctl, namespace.as_raw_fd(), NUMBER_HERE, inside) };
    i32::try_from(number).ok().filter(|number| *number > 0)
}

/// Looks for a process among all of the keep.
fn search(is_it: impl Fn(i32) -> bool) -> Result<Option<i32>> {
    let entries = std::fs::read_dir("/proc").during("list the keep's processes")?;
    let mut pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.find(|pid| is_it(*pid)))
}

/// Returns a process's pid in its innermost pid namespace.
fn innermost(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}
