//! Descendants of a process, and what they hold, as the kernel lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::find::{self, ProcessStat};

/// Directories in which sandboxes mount and people seldom do. Such a mount in the host's table would be one
/// that got out of its namespace.
const MOUNT_POINTS: [&str; 9] = [
    "/workspace",
    "/tmp/data",
    "/tmp/output",
    "/proc/sys",
    "/opt/python",
    "/opt/layers",
    "/opt/cellblock",
    "/opt/frozen",
    "/proc/kcore",
];

/// Lists what descends from a process, or from one that once did: ids come again, so those go by id
/// and start time.
pub(super) fn below(ancestor: u32, known: &BTreeMap<u32, String>) -> Vec<ProcessStat> {
    let all = find::all_processes();
    let mut ours: BTreeSet<u32> = all
        .iter()
        .filter(|process| known.get(&process.id) == Some(&process.started))
        .map(|process| process.id)
        .collect();
    loop {
        let found: Vec<u32> = all
            .iter()
            .filter(|process| !ours.contains(&process.id))
            .filter(|process| process.parent == ancestor || ours.contains(&process.parent))
            .map(|process| process.id)
            .collect();
        if found.is_empty() {
            break;
        }
        ours.extend(found);
    }
    all.into_iter()
        .filter(|process| process.id != ancestor && ours.contains(&process.id))
        .collect()
}

/// Counts the threads of a process.
pub(super) fn threads(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count)
}

/// Lists the namespaces that some processes are in.
pub(super) fn namespaces(processes: impl Iterator<Item = u32>) -> BTreeSet<String> {
    processes
        .flat_map(|process| {
            fs::read_dir(format!("/proc/{process}/ns"))
                .into_iter()
                .flatten()
                .flatten()
        })
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

/// Lists the cgroup directories with these names in every hierarchy, and those below them.
pub(super) fn cgroups(names: &BTreeSet<String>) -> BTreeSet<String> {
    let ours = |path: &String| path.split('/').any(|part| names.contains(part));
    find::cgroups(ours)
}

/// Counts mounts of the host's table at places where sandboxes mount, and below these directories.
pub(super) fn mounts_of_sandboxes(folders: &[PathBuf]) -> usize {
    let mounts = find::mount_points();
    let ours = |point: &&PathBuf| {
        MOUNT_POINTS.iter().any(|known| point.as_os_str() == *known)
            || folders.iter().any(|folder| point.starts_with(folder))
    };
    mounts.iter().filter(ours).count()
}

/// Counts the locks on id ranges that these processes hold (`proc(5)`, `/proc/locks`).
pub(super) fn id_locks(holders: &BTreeSet<u32>) -> usize {
    let files = fs::read_dir("/run/cellblock").into_iter().flatten().flatten();
    let inodes: BTreeSet<String> = files
        .filter_map(|entry| Some(entry.metadata().ok()?.ino().to_string()))
        .collect();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let ours = |line: &&str| {
        let mut fields = line.split_whitespace().skip(4);
        let holder = fields.next().and_then(|pid| pid.parse().ok());
        let inode = fields.next().and_then(|file| file.rsplit(':').next());
        holder.is_some_and(|pid| holders.contains(&pid)) && inode.is_some_and(|inode| inodes.contains(inode))
    };
    locks.lines().filter(ours).count()
}
