//! Which host ids a launcher's sandboxes run under.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use cellblock_jail::ids::KeepIds;
use rustix::fs::{FlockOperation, flock};

use crate::error::{During, Kind, Result};

/// Ids above any that distributions give to users, containers or `systemd-nspawn`.
const FIRST: u32 = 0x6000_0000;
/// Ids per launcher: one for its keep and one per room.
pub(super) const COUNT: u32 = 0x1_0000;
/// How many launchers may run at once.
const RANGES: u32 = 4096;
/// Locks that tell which ranges are taken; root's, so that no other user can hold them.
const LOCKS: &str = "/run/cellblock";

/// Chooses the id map, with the lock that keeps the range ours; the lock ends with this process.
pub(super) fn choose() -> Result<(KeepIds, Option<File>)> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    if uid != 0 || !has_full_id_range() {
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
                Some(file),
            ));
        }
    }
    Err(Kind::Launch {
        reason: format!("all {RANGES} ranges of user ids are taken"),
    }
    .into())
}

/// Whether this process may map any host id: false inside a container with a user namespace of its own.
pub fn has_full_id_range() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}
