//! Host ids under which a launcher's sandboxes run.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use cellblock_jail::ids::KeepIds;
use cellblock_jail::subordinate;
use rustix::fs::{FlockOperation, flock};

use crate::error::{DuringIo, Result, SandboxErrorKind};

/// First id above all ranges that distributions assign to users, containers or `systemd-nspawn`.
const FIRST: u32 = 0x6000_0000;
/// Number of ids per launcher of root: one for its keep and one per room.
pub(super) const COUNT: u32 = 0x1_0000;
/// Maximum number of launchers that can run at once.
const RANGES: u32 = 4096;
/// Directory of the locks on used ranges; it belongs to root, so that no other user can hold them.
const LOCKS: &str = "/run/cellblock";

/// Number of ids per launcher of an ordinary user, who usually has 65,536.
const PART: u32 = 1024;

/// Chooses the id map; the descriptor reserves the range as long as it is open.
pub(super) fn choose() -> Result<(KeepIds, Option<OwnedFd>)> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    if uid != 0 {
        return Ok(subordinate(uid, gid).unwrap_or((KeepIds::Single { uid, gid }, None)));
    }
    if !has_full_id_range() {
        return Ok((KeepIds::Single { uid, gid }, None));
    }
    let locks = Path::new(LOCKS);
    fs::create_dir_all(locks).during("create the directory of id locks")?;
    for range in 0..RANGES {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(locks.join(format!("ids-{range}.lock")))
            .during("open an id lock")?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok((
                KeepIds::Range {
                    base: FIRST + range * COUNT,
                    count: COUNT,
                },
                Some(file.into()),
            ));
        }
    }
    Err(SandboxErrorKind::Launch {
        reason: format!("all {RANGES} ranges of user ids are in use"),
    }
    .into())
}

/// Reserves a part of the user's subordinate ids; `None` if none is free, which the launcher
/// reports.
///
/// The name of an abstract socket marks a part as used. The name disappears with its owner, and is
/// in no directory that could be cleaned up.
fn subordinate(uid: u32, gid: u32) -> Option<(KeepIds, Option<OwnedFd>)> {
    let all = subordinate::find(uid).ok()?;
    let count = all.count.min(PART);
    (0..all.count / count).find_map(|part| {
        let first = all.uids + part * count;
        let name = SocketAddr::from_abstract_name(format!("cellblock-ids-{first}")).ok()?;
        let held = UnixListener::bind_addr(&name).ok()?;
        let ids = KeepIds::Subordinate {
            uid,
            gid,
            uids: first,
            gids: all.gids + part * count,
            count,
        };
        Some((ids, Some(held.into())))
    })
}

/// Returns the ids that the next launcher would have, without reserving them.
pub fn preview() -> KeepIds {
    choose().map_or_else(
        |_| KeepIds::Single {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        },
        |(ids, _)| ids,
    )
}

/// Returns whether this process may map any host id: false in a container with its own user
/// namespace.
fn has_full_id_range() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}
