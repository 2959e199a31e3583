//! Ends processes of the room, whoever started them.

/// Kills all other processes; answers whether there were none.
pub(super) fn all() -> bool {
    !signal(-1, libc::SIGKILL)
}

/// Kills all other processes but one; answers whether there were none.
///
/// All are stopped first, in one call that nothing forks away from; then each is killed by its number, and the spared one goes on. A
/// process that hides from `/proc` by making itself undumpable is not found: this tidies up after user code, it is no wall.
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

/// The numbers of all processes, as the room's own `/proc` has them.
fn processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// A zombie does nothing any more; its parent, which may be the spared process, collects it in its own time.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Whether there was a process to signal. As the first process of its pid namespace, the guest reaches all others by -1, and not itself.
fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill touches no memory; every number means a process of this pid namespace (kill(2)).
    unsafe { libc::kill(pid, signal) == 0 }
}
