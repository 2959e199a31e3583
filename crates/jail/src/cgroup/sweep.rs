//! Finding places for groups, and removing groups that a crash left behind.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Controller, Version};

/// Prefix of every directory that we create.
const PREFIX: &str = "cellblock-";

/// A directory below which a launcher may create its own.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) version: Version,
    pub(super) controllers: Vec<Controller>,
    pub(super) parent: PathBuf,
}

/// Returns the name of a launcher's directories: its pid and start time, a combination that is
/// never reused.
pub(super) fn name_of(pid: u32) -> Option<String> {
    Some(format!("{PREFIX}{pid}-{}", start_time(pid)?))
}

impl super::Trees {
    /// Returns the name under which the calling process creates its directories.
    pub fn own_name() -> String {
        let pid = std::process::id();
        name_of(pid).unwrap_or_else(|| format!("{PREFIX}{pid}-0"))
    }
}

/// Removes the directories of launchers that no longer run.
pub fn sweep() {
    for candidate in candidates() {
        let Ok(entries) = fs::read_dir(&candidate.parent) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name
                .to_str()
                .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok())
            else {
                continue;
            };
            if name_of(pid).as_deref() != name.to_str() {
                remove_tree(&entry.path());
            }
        }
    }
}

/// Kills the processes in one of our directories and removes it, what is deepest first: a machine
/// inside has groups of its own.
pub(super) fn remove_tree(path: &Path) {
    for _ in 0..50 {
        if remove_below(path) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Returns whether the directory is gone with everything below it.
fn remove_below(path: &Path) -> bool {
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut gone = true;
    for entry in below {
        gone &= remove_below(&entry.path());
    }
    if !gone || (fs::remove_dir(path).is_err() && path.exists()) {
        kill_group(path);
        return false;
    }
    true
}

/// Kills the processes in a group, all at once if the kernel can (v2, Linux 5.14), so that none
/// forks meanwhile.
fn kill_group(dir: &Path) {
    if fs::write(dir.join("cgroup.kill"), "1").is_err() {
        kill_members(dir);
    }
}

fn kill_members(dir: &Path) {
    let Ok(pids) = fs::read_to_string(dir.join("cgroup.procs")) else {
        return;
    };
    for pid in pids
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Lists the places where the calling process may create groups: v2 first, then each v1 tree.
pub(super) fn candidates() -> Vec<Candidate> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if names.is_empty() {
            found.splice(0..0, v2_candidates(&mounts, group));
            continue;
        }
        let controllers: Vec<_> = [Controller::Memory, Controller::Pids, Controller::Cpu]
            .into_iter()
            .filter(|controller| names.split(',').any(|name| name == controller.name()))
            .collect();
        // Limits nothing, but counts CPU time, which `cpu` alone does not do if the two are
        // separate trees.
        let counts = names.split(',').any(|name| name == "cpuacct");
        let Some(option) = controllers
            .first()
            .map(|it| it.name())
            .or(counts.then_some("cpuacct"))
        else {
            continue;
        };
        if let Some(mount) = mount_point(&mounts, "cgroup", option) {
            found.push(Candidate {
                version: Version::V1,
                controllers,
                parent: below(&mount, group),
            });
        }
    }
    found
}

/// A group that contains processes cannot delegate controllers, so a sibling of our own group is
/// tried first.
fn v2_candidates(mounts: &str, group: &str) -> Vec<Candidate> {
    let Some(mount) = mount_point(mounts, "cgroup2", "") else {
        return Vec::new();
    };
    let own = below(&mount, group);
    [
        own.parent()
            .filter(|parent| parent.starts_with(&mount))
            .map(Path::to_owned),
        Some(own),
    ]
    .into_iter()
    .flatten()
    .filter_map(|parent| {
        let enabled = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
        let has = |controller: &Controller| enabled.split_whitespace().any(|name| name == controller.name());
        let controllers: Vec<_> = [Controller::Memory, Controller::Pids, Controller::Cpu]
            .into_iter()
            .filter(has)
            .collect();
        let useful = controllers.contains(&Controller::Memory) && controllers.contains(&Controller::Pids);
        useful.then_some(Candidate {
            version: Version::V2,
            controllers,
            parent,
        })
    })
    .collect()
}

fn mount_point(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let matches = right.next()? == kind
            && (option.is_empty() || right.nth(1)?.split(',').any(|word| word == option));
        matches
            .then(|| left.split(' ').nth(4).map(PathBuf::from))
            .flatten()
    })
}

fn below(mount: &Path, group: &str) -> PathBuf {
    mount.join(group.trim_start_matches('/'))
}

/// Returns the clock ticks after boot at which a process started (`proc_pid_stat(5)`, field 22). A
/// zombie counts as gone: its parent may collect it late or never.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let lives = !matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| lives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found_by_kind_and_controller() {
        let mounts = "25 1 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      26 1 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            mount_point(mounts, "cgroup", "memory"),
            Some("/sys/fs/cgroup/memory".into())
        );
        assert_eq!(mount_point(mounts, "cgroup", "pids"), None);
        assert_eq!(
            mount_point(mounts, "cgroup2", ""),
            Some("/sys/fs/cgroup/unified".into())
        );
    }

    #[test]
    fn groups_of_a_group_are_removed_with_it_however_deep() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("cellblock-1-1");
        fs::create_dir_all(group.join("machine/cellblock-2-2/room")).unwrap();
        fs::create_dir_all(group.join("other")).unwrap();
        remove_tree(&group);
        assert!(!group.exists());
    }

    #[test]
    fn a_name_contains_the_start_time_of_its_process() {
        let own = name_of(std::process::id()).unwrap();
        assert!(own.starts_with(&format!("cellblock-{}-", std::process::id())));
        assert_eq!(name_of(u32::MAX), None);
    }

    #[test]
    fn a_zombie_counts_as_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(name_of(child.id()), None);
        child.wait().unwrap();
    }
}
