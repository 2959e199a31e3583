//! The warden of a command: a child of the guest that starts the command, reaps every process that
//! it leaves behind, and ends all of them.
//!
//! A command can leave its process group and its session, but not its warden: orphans below it
//! become the warden's own children (`PR_SET_CHILD_SUBREAPER`), so the warden can find and end all
//! of them. The kernel's processes are not below it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use cellblock_jail::error::SyscallResult;
use cellblock_jail::fds;
use cellblock_jail::process::{Child, child_signals, clear_child_signals, reap_one, report, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_child_subreaper};

use super::command::Start;
use super::streams::CommandEnds;

/// Maximum time that a command's processes may take to exit after SIGKILL.
pub(super) const END_LIMIT: Duration = Duration::from_secs(5);
/// Pause between checks of killed processes.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// A warden's final report on its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WardenVerdict {
    /// Raw wait status of the command itself.
    pub(super) status: i32,
    pub(super) timed_out: bool,
    /// Whether one of its processes could not be ended.
    pub(super) leaked: bool,
}

impl WardenVerdict {
    pub(super) const LEN: usize = 6;

    fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.status.to_ne_bytes();
        [a, b, c, d, u8::from(self.timed_out), u8::from(self.leaked)]
    }

    pub(super) fn from_bytes([a, b, c, d, timed_out, leaked]: [u8; Self::LEN]) -> Self {
        Self {
            status: i32::from_ne_bytes([a, b, c, d]),
            timed_out: timed_out != 0,
            leaked: leaked != 0,
        }
    }
}

/// The warden's ends of its pipes.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) streams: CommandEnds,
    pub(super) control: OwnedFd,
    pub(super) verdict: OwnedFd,
}

/// Runs a command and all processes that it starts until they have ended; called in a process
/// cloned for it.
pub(super) fn watch(
    start: &Start,
    ends: Ends,
    rules: Option<&OwnedFd>,
    timeout: Duration,
) -> cellblock_jail::Result<()> {
    let mut open: Vec<_> = rules.into_iter().map(AsRawFd::as_raw_fd).collect();
    open.extend([&ends.control, &ends.verdict].map(AsRawFd::as_raw_fd));
    open.extend(ends.streams.raw());
    fds::close_all_but(&open)?;
    rustix::thread::set_name(c"cellblock-exec").during("name the warden")?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    let children = child_signals()?;
    let Ends {
        streams,
        control,
        verdict,
    } = ends;
    let terminal = streams.terminal.as_ref();
    // Open until this process ends.
    let _terminal = terminal
        .map(|it| fcntl_dupfd_cloexec(it, 3))
        .transpose()
        .during("keep the terminal")?;
    let child =
        spawn(0, None, || start.become_it(streams, rules.map(AsFd::as_fd))).during("start the command")?;
    let (status, timed_out) = follow(&child, &children, &control, timeout)?;
    let (status, leaked) = end_all(&child, &children, status);
    let said = WardenVerdict {
        status: status.unwrap_or(libc::SIGKILL),
        timed_out,
        leaked,
    };
    rustix::io::write(&verdict, &said.to_bytes()).during("tell how the command ended")?;
    Ok(())
}

/// Waits until the command has ended, its time is over, or the host requests its end.
fn follow(
    child: &Child,
    children: &OwnedFd,
    control: &OwnedFd,
    timeout: Duration,
) -> cellblock_jail::Result<(Option<i32>, bool)> {
    // A deadline beyond the clock's range never arrives.
    let deadline = Instant::now().checked_add(timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok((None, true));
        }
        let mut polled = [
            PollFd::new(children, PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
        ];
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).during("wait for the command"),
        }
        let [ended, told] = polled.map(|fd| !fd.revents().is_empty());
        if let Some(status) = ended.then(|| reap(child, children)).flatten() {
            return Ok((Some(status), false));
        }
        if told {
            let mut word = [0];
            match (rustix::io::read(control, &mut word), word.map(named)) {
                (Ok(1), [Some(signal)]) => send(child, signal),
                (Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN), _) => {}
                // The pipe's end orders its end.
                _ => return Ok((None, false)),
            }
        }
    }
}

fn named(number: u8) -> Option<Signal> {
    Signal::from_named_raw(number.into())
}

/// Sends a signal to the command's process group, or to the command if it has not made one yet.
fn send(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.pid)
        && kill_process_group(pid, signal).is_err()
    {
        let _ = kill_process(pid, signal);
    }
}

/// Reaps ended processes. Returns the command's status if it is among them.
fn reap(child: &Child, children: &OwnedFd) -> Option<i32> {
    clear_child_signals(children);
    let mut own = None;
    while let Some((pid, status)) = reap_one() {
        if pid == child.pid {
            own = Some(status);
        }
    }
    own
}

/// Kills the remaining processes repeatedly until there are none: children of killed processes
/// become the warden's own.
fn end_all(child: &Child, children: &OwnedFd, mut status: Option<i32>) -> (Option<i32>, bool) {
    let deadline = Instant::now() + END_LIMIT;
    loop {
        // Once the command is reaped, its pid may belong to another process.
        if let (None, Some(group)) = (status, Pid::from_raw(child.pid)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let alive = match own_children() {
            Some(pids) => {
                // Stop all of them first: a stopped process cannot fork while its siblings are
                // killed.
                for signal in [Signal::STOP, Signal::KILL] {
                    for pid in &pids {
                        let _ = kill_process(*pid, signal);
                    }
                }
                !pids.is_empty()
            }
            // This kernel does not list children; use those that `/proc` shows.
            None => !cellblock_jail::tree::end_own(&[]),
        };
        status = reap(child, children).or(status);
        if !alive && !has_children() {
            return (status, false);
        }
        if Instant::now() > deadline {
            return (status, true);
        }
        let _ = poll(&mut [PollFd::new(children, PollFlags::IN)], Some(&PAUSE));
    }
}

/// Returns the children of this process, including those hidden from `/proc`; `None` if the kernel
/// does not list them.
fn own_children() -> Option<Vec<Pid>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let listed = std::fs::read_to_string(Path::new(&path)).ok()?;
    let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
    Some(pids.filter_map(Pid::from_raw).collect())
}

/// Returns whether this process has any children, ended or not.
fn has_children() -> bool {
    let mut status = 0;
    // SAFETY: waitpid writes one int, into one of our locals; with these flags it reaps nothing.
    unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) >= 0 }
}

/// Starts a warden with these ends.
pub(super) fn start(
    command: Start,
    ends: Ends,
    rules: Option<BorrowedFd<'_>>,
    timeout: Duration,
) -> cellblock_jail::Result<Child> {
    let rules = rules
        .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3))
        .transpose()
        .during("keep the rules")?;
    spawn(0, None, move || {
        watch(&command, ends, rules.as_ref(), timeout).inspect_err(|error| {
            report(&format!("command: {}", cellblock_jail::error::chain(error)));
        })
    })
    .during("start the command's warden")
}
