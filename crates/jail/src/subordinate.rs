//! Subordinate ids: the ranges that `/etc/subuid` and `/etc/subgid` assign to an ordinary user, and
//! `newuidmap` and `newgidmap`, which map them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directories that may contain the two programs. Not `PATH`: they run with root's privileges.
const FOLDERS: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin"];

/// A range of ids that a user may map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subordinate {
    /// First user id.
    pub uids: u32,
    /// First group id.
    pub gids: u32,
    /// Number of ids of each kind.
    pub count: u32,
}

/// Returns a user's ids, or why there are none.
pub fn find(uid: u32) -> Result<Subordinate, String> {
    for program in ["newuidmap", "newgidmap"] {
        path_of(program)?;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line == "NoNewPrivs:\t1") {
        return Err(
            "`no_new_privs` is set, so `newuidmap` cannot gain the privileges that it needs".to_owned(),
        );
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_of(&users, uid);
    let (uids, user_ids) = range("/etc/subuid", uid, name)?;
    let (gids, group_ids) = range("/etc/subgid", uid, name)?;
    Ok(Subordinate {
        uids,
        gids,
        count: user_ids.min(group_ids),
    })
}

/// Maps 0 and the following ids, `count` in total, to those from the first of each pair on, and the
/// next id to the second of the pair, which is the caller's own.
pub(crate) fn write(pid: i32, uids: (u32, u32), gids: (u32, u32), count: u32) -> Result<(), String> {
    for (program, (first, own)) in [("newuidmap", uids), ("newgidmap", gids)] {
        let numbers = [0, first, count, count, own, 1].map(|number| number.to_string());
        let ran = Command::new(path_of(program)?)
            .arg(pid.to_string())
            .args(numbers)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            return Err(format!(
                "`{program}` failed to map the user's subordinate ids: {}",
                said.trim()
            ));
        }
    }
    Ok(())
}

fn path_of(program: &str) -> Result<PathBuf, String> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(program));
    paths
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| format!("`{program}` is not installed"))
}

fn range(file: &str, uid: u32, name: Option<&str>) -> Result<(u32, u32), String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    largest(&text, uid, name).ok_or_else(|| format!("`{file}` assigns no range of ids to this user"))
}

/// Returns the largest range of a user, by name or number, with at least one id for the keep and
/// one for a room (subuid(5)).
fn largest(text: &str, uid: u32, name: Option<&str>) -> Option<(u32, u32)> {
    let number = uid.to_string();
    let ranges = text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let first: u32 = fields.next()?.parse().ok()?;
        let count: u32 = fields.next()?.parse().ok()?;
        let ours = owner == number || Some(owner) == name;
        (ours && count > 1 && first > 0 && first.checked_add(count).is_some()).then_some((first, count))
    });
    ranges.max_by_key(|(_, count)| *count)
}

/// Returns a user's name (passwd(5)).
fn name_of(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_range_of_a_user_is_found_by_name_or_number() {
        let text = "ann:100000:65536\nbob:165536:65536\n1001:300000:70000\nann:900000:10\n";
        assert_eq!(largest(text, 1000, Some("ann")), Some((100_000, 65_536)));
        assert_eq!(largest(text, 1001, Some("bob")), Some((300_000, 70_000)));
        assert_eq!(largest(text, 1002, None), None);
    }

    #[test]
    fn unusable_lines_are_skipped() {
        for text in [
            "",
            "ann",
            "ann:x:5",
            "ann:0:65536",
            "ann:5:1",
            "ann:4294967295:2",
            "annabel:1000:65536",
        ] {
            assert_eq!(largest(text, 1000, Some("ann")), None, "{text}");
        }
    }

    #[test]
    fn a_name_is_found_only_for_its_own_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/srv/ann:/bin/sh\n";
        assert_eq!(name_of(users, 1000), Some("ann"));
        assert_eq!(name_of(users, 100), None);
    }
}
