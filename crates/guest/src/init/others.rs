//! Ending what runs in a room beside its kernel.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Signals every process but this one and the spared one; answers whether there were none.
///
/// A process that hides from `/proc` by making itself undumpable is not found: this tidies up after code that ran into a limit, it is no
/// wall.
pub(super) fn kill_but(spared: u32) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid > 1 && *pid != spared && lives(*pid));
    let mut none = true;
    for pid in others {
        none = false;
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    none
}

/// A zombie does nothing any more; its parent, which may be the spared process, collects it in its own time.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}
