//! Resource usage of the room.

use cellblock_protocol::{Disk, FromGuest};

const DISKS: [&str; 4] = ["/workspace", "/tmp", "/tmp/data", "/dev/shm"];

/// Builds the response to `stats`. A guest that is not `alone` has no file systems of its own and
/// does not report the machine's.
pub(super) fn message(request: u64, alone: bool) -> FromGuest {
    if !alone {
        return FromGuest::Stats {
            request,
            disks: Vec::new(),
            processes: 0,
        };
    }
    let disks = DISKS.iter().filter_map(|path| disk(path)).collect();
    FromGuest::Stats {
        request,
        disks,
        processes: processes(),
    }
}

fn disk(path: &str) -> Option<Disk> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(Disk {
        path: path.to_owned(),
        bytes_used: (stat.f_blocks - stat.f_bfree) * stat.f_frsize,
        bytes_limit: stat.f_blocks * stat.f_frsize,
        inodes_used: stat.f_files - stat.f_ffree,
        inodes_limit: stat.f_files,
    })
}

fn processes() -> u32 {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let count = entries
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.parse::<u32>().is_ok())
        })
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
