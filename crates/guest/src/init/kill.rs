//! Ending the room's processes, including those that the guest did not start.

/// Kills all other processes; returns whether there were none.
pub(super) fn all() -> bool {
    !signal(-1, libc::SIGKILL)
}

/// Kills all other processes except one; returns whether there were none.
///
/// First, one call stops all of them, so that none can fork. Then each is killed by its pid and the
/// spared process continues. A process that hides from `/proc` by making itself undumpable is
/// missed: this cleans up after user code, it is not a security boundary.
pub(super) fn all_but(spared: u32) -> bool {
    let Ok(spared) = i32::try_from(spared) else {
        return all();
    };
    signal(-1, libc::SIGSTOP);
    let others: Vec<i32> = processes()
        .into_iter()
        .filter(|pid| *pid > 1 && *pid != spared && lives(*pid))
        .collect();
    for pid in &others {
        signal(*pid, libc::SIGKILL);
    }
    if spared > 1 {
        signal(spared, libc::SIGCONT);
    }
    others.is_empty()
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

/// Returns whether a process is alive. A zombie is not; its parent, which may be the spared
/// process, reaps it later.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Returns whether there was a process to signal. Because the guest is the first process of its pid
/// namespace, -1 reaches all others but not itself.
fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill touches no memory; every pid belongs to this pid namespace (kill(2)).
    unsafe { libc::kill(pid, signal) == 0 }
}
