//! Reads processes, mounts, cgroups and descriptors from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// One line of `/proc/<pid>/stat`, as far as it is needed.
#[derive(Debug, Clone)]
pub(super) struct ProcessStat {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) parent: u32,
    pub(super) started: String,
}

pub(super) fn all_processes() -> Vec<ProcessStat> {
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?))
        .collect()
}

fn parse(id: u32, stat: &str) -> Option<ProcessStat> {
    // The name may hold blanks and parentheses; the last `)` ends it.
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(ProcessStat {
        id,
        name: name.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        // Field 22 of the line; two were consumed before `fields`.
        started: (*fields.get(19)?).to_owned(),
    })
}

fn mount(line: &str) -> Option<(&str, &str, &str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ');
    Some((fields.next()?, fields.nth(3)?, after.split(' ').next()?))
}

/// Lists where something is mounted in this mount namespace.
pub(super) fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines()
        .filter_map(mount)
        .map(|(_, point, _)| PathBuf::from(point))
        .collect()
}

/// Lists the control groups in every mounted hierarchy whose path passes the test.
pub(super) fn cgroups(wanted: impl Fn(&String) -> bool) -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let roots = text
        .lines()
        .filter_map(mount)
        .filter(|(_, _, kind)| kind.starts_with("cgroup"));
    let mut open: Vec<PathBuf> = roots.map(|(_, point, _)| PathBuf::from(point)).collect();
    let mut found = BTreeSet::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().display().to_string();
            if wanted(&path) {
                found.insert(path);
            }
            open.push(entry.path());
        }
    }
    found
}

/// Counts the open descriptors of a process by kind.
pub(super) fn descriptors(process: u32) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let Ok(link) = fs::read_link(entry.path()) else {
            continue;
        };
        // `socket:[1234]` is a socket whichever its inode.
        let link = link.to_string_lossy();
        let kind = link
            .split_once(":[")
            .filter(|(kind, _)| *kind != "anon_inode")
            .map_or(&*link, |(kind, _)| kind);
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_blanks_and_parentheses_is_read_whole() {
        let rest = (5..=52)
            .map(|field| field.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        let process = parse(7, &format!("7 (a) b (c) S 3 {rest}\n")).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) b (c", 3));
        assert_eq!(process.started, "22");
    }

    #[test]
    fn a_mount_is_known_by_id_place_and_kind() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount(line), Some(("36", "/mnt2", "ext3")));
    }
}
