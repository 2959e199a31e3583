//! Finding a process of a room from outside by its pid inside.

use std::os::fd::{AsFd, OwnedFd};

use cellblock_jail::error::During;
use cellblock_jail::room::Room;
use cellblock_jail::{Error, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Returns the process's pid in the keep, and its pidfd. The room's first process is never
/// returned.
pub(super) fn find(room: &Room, inside: u32) -> Result<(i32, OwnedFd)> {
    let missing = || Error::Child(format!("the room has no process {inside}"));
    let namespace = room.namespaces.first().ok_or_else(missing)?;
    let namespace = rustix::fs::fstat(namespace.as_fd()).during("look at the room's pid namespace")?;
    let is_it = |pid: i32| {
        let own = rustix::fs::stat(format!("/proc/{pid}/ns/pid"));
        own.is_ok_and(|own| (own.st_dev, own.st_ino) == (namespace.st_dev, namespace.st_ino))
            && innermost(pid) == Some(inside)
    };
    if inside <= 1 {
        return Err(missing());
    }
    let entries = std::fs::read_dir("/proc").during("list the keep's processes")?;
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if !is_it(pid) {
            continue;
        }
        let Some(number) = Pid::from_raw(pid) else {
            continue;
        };
        let pidfd = pidfd_open(number, PidfdFlags::empty()).during("open the standby")?;
        // Checked again because the pid could have been reused before it was opened.
        return if is_it(pid) {
            Ok((pid, pidfd))
        } else {
            Err(missing())
        };
    }
    Err(missing())
}

/// Returns a process's pid in its innermost pid namespace.
fn innermost(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}
