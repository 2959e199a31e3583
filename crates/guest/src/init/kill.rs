//! Ending the room's processes, including those that the guest did not start.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::Duration;

use cellblock_jail::tree;

/// `PF_EXITING` of `linux/sched.h`: a thread that has left its program for good.
const EXITING: u32 = 0x4;
/// Maximum number of looks at stopped processes until they rest.
const ROUNDS: u32 = 20;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_micros(50);

/// Signals that end no process, as bits. A process that blocks all of them has SIGCONT waiting once
/// it was stopped.
const HARMLESS: u64 = bit(libc::SIGCONT) | bit(libc::SIGCHLD) | bit(libc::SIGURG) | bit(libc::SIGWINCH);

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Activity that the threads of a process may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    /// Nothing: it has ended, or is being taken apart, which takes long for one with much memory.
    /// Its parent, which may be a spared process, reaps it later.
    Over,
    /// Nothing until it is continued: it is stopped, and in no system call.
    Stopped,
    Running,
}

/// Kills all other processes; returns whether there were none.
pub(super) fn all() -> bool {
    !signal(-1, libc::SIGKILL)
}

/// Kills all other processes except the spared ones and those below `wardens`; returns whether none
/// of them runs any more.
///
/// First all of them are stopped, so that none can fork. Then each is killed by its pid and the
/// spared ones, a kernel and its kept copies, continue. A process that hides from `/proc` by making
/// itself undumpable is missed: this cleans up after user code, it is not a security boundary.
pub(super) fn all_but(spared: &[u32], wardens: &[i32]) -> bool {
    let (others, are_stopped) = stop_others(spared, wardens);
    each(&others);
    proceed(spared);
    are_stopped
}

/// Stops them, and lets the spared ones continue. Returns them if all of them rest: they run
/// nothing of their programs until they are killed, and nothing after that. Otherwise kills them.
pub(super) fn stop_all_but(spared: &[u32], wardens: &[i32]) -> Option<Vec<i32>> {
    let (others, are_stopped) = stop_others(spared, wardens);
    if !are_stopped {
        each(&others);
    }
    proceed(spared);
    are_stopped.then_some(others)
}

/// Kills stopped processes, whose pids nobody else can have.
pub(super) fn each(pids: &[i32]) {
    for pid in pids {
        signal(*pid, libc::SIGKILL);
    }
}

fn proceed(spared: &[u32]) {
    for pid in spared.iter().filter_map(|pid| i32::try_from(*pid).ok()) {
        if pid > 1 {
            signal(pid, libc::SIGCONT);
        }
    }
}

/// Returns whether a process can go on: it runs, and no signal waits for it, which could end it
/// once it is not blocked any more.
pub(super) fn can_go_on(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_harmless = |mask: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(mask));
        found
            .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
            .is_some_and(|waiting| waiting & !HARMLESS == 0)
    };
    i32::try_from(pid).is_ok_and(|pid| activity(pid) == Activity::Running)
        && is_harmless("SigPnd:")
        && is_harmless("ShdPnd:")
}

/// Stops all other processes except the spared ones and those below `wardens`. Returns them, and
/// whether all of them rest.
fn stop_others(spared: &[u32], wardens: &[i32]) -> (Vec<i32>, bool) {
    let spared: Vec<i32> = spared.iter().filter_map(|pid| i32::try_from(*pid).ok()).collect();
    if wardens.is_empty() {
        signal(-1, libc::SIGSTOP);
    }
    let mut others = Vec::new();
    for _ in 0..ROUNDS {
        // Before they are listed: one that is starting another process does not rest.
        let are_stopped = others.iter().all(|pid| activity(*pid) != Activity::Running);
        let fresh = fresh(&others, &spared, wardens);
        if fresh.is_empty() && are_stopped {
            return (others, true);
        }
        if fresh.is_empty() {
            std::thread::sleep(PAUSE);
        }
        for pid in &fresh {
            signal(*pid, libc::SIGSTOP);
        }
        others.extend(fresh);
    }
    (others, false)
}

/// Lists the processes to be killed that are not known yet.
fn fresh(known: &[i32], spared: &[i32], wardens: &[i32]) -> Vec<i32> {
    let mut others = processes();
    others.retain(|pid| {
        *pid > 1
            && ![known, spared, wardens].iter().any(|those| those.contains(pid))
            && activity(*pid) != Activity::Over
    });
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

/// Returns the pids of all processes in the room's own `/proc`.
fn processes() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn activity(pid: i32) -> Activity {
    let Some(seen) = ThreadStat::at(&format!("/proc/{pid}/stat")) else {
        return Activity::Over;
    };
    if seen.threads <= 1 {
        return seen.activity();
    }
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Activity::Over;
    };
    let most = threads.flatten().try_fold(Activity::Over, |most, thread| {
        let path = thread.path().join("stat");
        match ThreadStat::at(&path.to_string_lossy()).map_or(Activity::Over, ThreadStat::activity) {
            Activity::Running => ControlFlow::Break(Activity::Running),
            less => ControlFlow::Continue(most.max(less)),
        }
    });
    match most {
        ControlFlow::Continue(most) | ControlFlow::Break(most) => most,
    }
}

/// Content of a thread's `stat` file.
#[derive(Clone, Copy, Debug)]
struct ThreadStat {
    state: char,
    flags: u32,
    /// Number of threads of its process.
    threads: u32,
}

impl ThreadStat {
    /// Reads a file at once: it is shorter than that.
    fn at(path: &str) -> Option<Self> {
        let mut line = [0; 1024];
        let length = File::open(path).and_then(|mut file| file.read(&mut line)).ok()?;
        Self::of(&String::from_utf8_lossy(&line[..length]))
    }

    /// Reads the file's only line: the name of the program is in parentheses, and may have some of its own.
    fn of(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<_> = rest.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            flags: fields.get(6)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
        })
    }

    const fn activity(self) -> Activity {
        match self.state {
            'Z' | 'X' => Activity::Over,
            _ if self.flags & EXITING != 0 => Activity::Over,
            'T' => Activity::Stopped,
            _ => Activity::Running,
        }
    }
}

/// Returns whether there was a process to signal. Because the guest is the first process of its pid
/// namespace, -1 reaches all others but not itself.
fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill touches no memory; every pid belongs to this pid namespace (kill(2)).
    unsafe { libc::kill(pid, signal) == 0 }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_runs_is_stopped_and_is_over() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(activity(pid), Activity::Running);
        assert!(can_go_on(child.id()));
        let becomes = |wanted: Activity| {
            (0..1000).any(|_| {
                std::thread::sleep(PAUSE);
                activity(pid) == wanted
            })
        };
        signal(pid, libc::SIGSTOP);
        assert!(becomes(Activity::Stopped));
        assert!(!can_go_on(child.id()));
        signal(pid, libc::SIGKILL);
        assert!(becomes(Activity::Over));
        assert!(!can_go_on(child.id()), "nobody has reaped it");
        child.wait().unwrap();
        assert_eq!(activity(pid), Activity::Over);
        assert!(!can_go_on(child.id()));
    }

    #[test]
    fn a_process_for_which_a_signal_waits_cannot_go_on() {
        let program = "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
                       print(flush=True)\nsys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        signal(pid, libc::SIGSTOP);
        signal(pid, libc::SIGCONT);
        assert!((0..1000).any(|_| {
            std::thread::sleep(PAUSE);
            can_go_on(child.id())
        }));
        signal(pid, libc::SIGTERM);
        assert!(!can_go_on(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn the_name_of_a_program_does_not_confuse() {
        let line = "42 (a) T (b) ) R 1 42 42 0 -1 4194368 527 0 0 0 0 0 0 0 20 0 3 0 4439695 2356822016";
        let seen = ThreadStat::of(line).unwrap();
        assert_eq!((seen.state, seen.flags, seen.threads), ('R', 4_194_368, 3));
        assert!(ThreadStat::of("42 (cut").is_none());
    }
}
