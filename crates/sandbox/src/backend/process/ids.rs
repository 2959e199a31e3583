//! Which host ids a launcher's sandboxes run under.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use cellblock_jail::ids::KeepIds;
use cellblock_jail::subordinate;
use rustix::fs::{FlockOperation, flock};

use crate::error::{During, Kind, Result};

/// Ids above any that distributions give to users, containers or `systemd-nspawn`.
const FIRST: u32 = 0x6000_0000;
/// Ids per launcher of root: one for its keep and one per room.
pub(super) const COUNT: u32 = 0x1_0000;
/// How many launchers may run at once.
const RANGES: u32 = 4096;
/// Locks that tell which ranges are taken; root's, so that no other user can hold them.
const LOCKS: &str = "/run/cellblock";

/// Ids per launcher of an ordinary user, who mostly has 65,536 of them.
const PART: u32 = 1024;

/// Chooses the id map, with what keeps the range ours as long as it is open.
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
    Err(Kind::Launch {
        reason: format!("all {RANGES} ranges of user ids are taken"),
    }
    .into())
}

/// A part of the user's subordinate ids that no other launcher has; none where there is none to be had, which the launcher reports.
///
/// A name of an abstract socket says that a part is taken. It ends with whoever holds it, and lies in no directory that could be cleaned up.
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

/// The ids that the next launcher would have, without taking them.
pub fn preview() -> KeepIds {
    choose().map_or_else(
        |_| KeepIds::Single {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        },
        |(ids, _)| ids,
    )
}

/// Whether this process may map any host id: false inside a container with a user namespace of its own.
fn has_full_id_range() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}
