//! Ending the room's processes, including those that the guest did not start.

use cellblock_jail::tree;

/// `PF_EXITING` of `linux/sched.h`: a thread that has left its program for good.
const EXITING: u32 = 0x4;

/// Kills all other processes; returns whether there were none.
pub(super) fn all() -> bool {
    !signal(-1, libc::SIGKILL)
}

/// Kills all other processes except the spared ones and those below `wardens`; returns whether there
/// were none.
///
/// First all of them are stopped, so that none can fork. Then each is killed by its pid and the
/// spared ones, a kernel and its kept copies, continue. A process that hides from `/proc` by making itself undumpable is missed: this
/// cleans up after user code, it is not a security boundary.
pub(super) fn all_but(spared: &[u32], wardens: &[i32]) -> bool {
    let spared: Vec<i32> = spared.iter().filter_map(|pid| i32::try_from(*pid).ok()).collect();
    if wardens.is_empty() {
        signal(-1, libc::SIGSTOP);
    }
    let mut others = Vec::new();
    loop {
        let fresh: Vec<i32> = visible(&spared, wardens)
            .into_iter()
            .filter(|pid| !others.contains(pid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for pid in &fresh {
            signal(*pid, libc::SIGSTOP);
        }
        others.extend(fresh);
    }
    for pid in &others {
        signal(*pid, libc::SIGKILL);
    }
    for pid in spared.iter().filter(|pid| **pid > 1) {
        signal(*pid, libc::SIGCONT);
    }
    others.is_empty()
}

/// Lists the living processes to be killed.
fn visible(spared: &[i32], wardens: &[i32]) -> Vec<i32> {
    let mut others = processes();
    others.retain(|pid| *pid > 1 && !spared.contains(pid) && !wardens.contains(pid) && lives(*pid));
    // Twice, because a process whose parent ends while they are listed seems to belong to nobody.
    for _ in 0..2 {
        if others.is_empty() {
            break;
        }
        for warden in wardens {
            let kept = tree::below(*warden, &[]);
            others.retain(|pid| !kept.contains(pid));
        }
    }
    others
}

/// Lists the pids of all processes in the room's own `/proc`.
fn processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns whether a process may still run instructions of its program. A zombie does not; its parent, which may be the spared process,
/// reaps it later. Nor does a process that is being taken apart, which takes long for one with much memory.
fn lives(pid: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let mut fields = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace();
        let state = fields.next();
        let flags: u32 = fields.nth(5).and_then(|flags| flags.parse().ok()).unwrap_or(0);
        state.is_some_and(|state| state != "Z" && state != "X") && flags & EXITING == 0
    })
}

/// Returns whether there was a process to signal. Because the guest is the first process of its pid
/// namespace, -1 reaches all others but not itself.
fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill touches no memory; every pid belongs to this pid namespace (kill(2)).
    unsafe { libc::kill(pid, signal) == 0 }
}
