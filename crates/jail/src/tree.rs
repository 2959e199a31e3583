//! Process trees: ending every process below a given one where there is no pid namespace for this.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Maximum time that processes may take to exit after SIGKILL.
const LIMIT: Duration = Duration::from_secs(5);

/// Ends every process below `root` except those in `spared` and their descendants; returns whether
/// all are gone.
///
/// Processes are stopped before any is killed, until a search finds no new ones: a stopped process
/// cannot fork. The caller must be the subreaper of `root`'s orphans (or `root` itself); otherwise
/// a process could escape by losing its parent.
pub fn end_below(root: i32, spared: &[i32]) -> bool {
    let deadline = Instant::now() + LIMIT;
    loop {
        let mut stopped = HashSet::new();
        loop {
            let fresh: Vec<_> = below(root, spared)
                .into_iter()
                .filter(|pid| !stopped.contains(pid))
                .collect();
            if fresh.is_empty() {
                break;
            }
            for pid in fresh {
                signal(pid, Signal::STOP);
                stopped.insert(pid);
            }
        }
        if stopped.is_empty() {
            return true;
        }
        for pid in &stopped {
            signal(*pid, Signal::KILL);
        }
        // Zombies do not count as alive: their parent, or the caller, collects them.
        while below(root, spared).iter().any(|pid| stopped.contains(pid)) {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Ends every process below the calling one except those in `spared`.
pub fn end_own(spared: &[i32]) -> bool {
    end_below(std::process::id().cast_signed(), spared)
}

/// Returns the current number of a user's processes and threads.
pub fn tasks_of(user: u32) -> u64 {
    let owned = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        (field("Uid:") == Some(user.into())).then(|| field("Threads:").unwrap_or(1))
    };
    pids().iter().filter_map(owned).sum()
}

/// Lists the living processes below `root` without the spared ones and their descendants.
pub fn below(root: i32, spared: &[i32]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in pids() {
        if let Some(parent) = parent_if_alive(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut ahead = vec![root];
    while let Some(pid) = ahead.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            if !spared.contains(&child) {
                found.push(child);
                ahead.push(child);
            }
        }
    }
    found
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the parent of a process that is not a zombie (`proc_pid_stat(5)`, fields 3 and 4).
fn parent_if_alive(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn processes_that_left_the_session_end_with_their_tree() {
        let mut root = Command::new("sh")
            .args(["-c", "setsid sleep 1000 & sleep 1000 & wait"])
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = root.id().cast_signed();
        let deadline = Instant::now() + LIMIT;
        while below(pid, &[]).len() < 2 {
            assert!(Instant::now() < deadline, "the tree did not grow");
            std::thread::sleep(Duration::from_millis(5));
        }
        let children = below(pid, &[]);
        let spared = children[0];
        assert!(end_below(pid, &[spared]));
        assert_eq!(below(pid, &[]), [spared]);
        assert!(end_below(pid, &[]));
        let _ = root.kill();
        root.wait().unwrap();
    }

    #[test]
    fn the_tasks_of_a_user_include_this_process_s_threads() {
        assert!(tasks_of(rustix::process::geteuid().as_raw()) >= 1);
        assert_eq!(tasks_of(u32::MAX - 7), 0);
    }
}
