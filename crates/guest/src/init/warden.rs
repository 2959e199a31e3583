//! The warden of one command: a process of the guest's own that starts it, collects whatever it leaves behind, and ends all of it.
//!
//! A command can leave its process group and its session, but not its warden: orphans below it become the warden's own children
//! (`PR_SET_CHILD_SUBREAPER`), and so it can find and end every one of them, the kernel's processes excepted, which are not below it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use cellblock_jail::error::During;
use cellblock_jail::fds;
use cellblock_jail::process::{Child, child_signals, clear_child_signals, reap_one, report, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_child_subreaper};

use super::command::Start;

/// How long what a command has started may take to go once it is killed.
pub(super) const END_LIMIT: Duration = Duration::from_secs(5);
/// Pause between looks at processes that were killed.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Says on the control pipe: SIGINT. Anything else, and its end, says: kill.
pub(super) const INTERRUPT: u8 = b'i';

/// What a warden says of its command at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The raw wait status of the command itself.
    pub(super) status: i32,
    pub(super) timed_out: bool,
    /// Whether something of it could not be ended.
    pub(super) leaked: bool,
}

impl Verdict {
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

/// A warden's own ends of its pipes.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) control: OwnedFd,
    pub(super) verdict: OwnedFd,
}

/// Runs a command to its end, and everything that it has started; called in a process that was cloned for it.
pub(super) fn watch(
    start: &Start,
    ends: Ends,
    rules: Option<&OwnedFd>,
    timeout: Duration,
) -> cellblock_jail::Result<()> {
    let mut open: Vec<_> = rules.into_iter().map(AsRawFd::as_raw_fd).collect();
    open.extend([&ends.stdout, &ends.stderr, &ends.control, &ends.verdict].map(AsRawFd::as_raw_fd));
    fds::close_all_but(&open)?;
    rustix::thread::set_name(c"cellblock-exec").during("name the warden")?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    let children = child_signals()?;
    let Ends {
        stdout,
        stderr,
        control,
        verdict,
    } = ends;
    let child = spawn(0, None, || {
        start.become_it(stdout, stderr, rules.map(AsFd::as_fd))
    })
    .during("start the command")?;
    let (status, timed_out) = follow(&child, &children, &control, timeout)?;
    let (status, leaked) = end_all(&child, &children, status);
    let said = Verdict {
        status: status.unwrap_or(libc::SIGKILL),
        timed_out,
        leaked,
    };
    rustix::io::write(&verdict, &said.to_bytes()).during("tell how the command ended")?;
    Ok(())
}

/// Waits until the command has ended, its time is over, or somebody wants its end.
fn follow(
    child: &Child,
    children: &OwnedFd,
    control: &OwnedFd,
    timeout: Duration,
) -> cellblock_jail::Result<(Option<i32>, bool)> {
    // A deadline that no clock reaches is none.
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
            match rustix::io::read(control, &mut word) {
                Ok(1) if word == [INTERRUPT] => {
                    if let Some(pid) = Pid::from_raw(child.pid) {
                        let _ = kill_process_group(pid, Signal::INT);
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => return Ok((None, false)),
            }
        }
    }
}

/// Collects what has ended; answers how the command itself did, if it is among it.
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

/// Kills whatever is left, again and again until nothing is: children of what was killed become the warden's own.
fn end_all(child: &Child, children: &OwnedFd, mut status: Option<i32>) -> (Option<i32>, bool) {
    let deadline = Instant::now() + END_LIMIT;
    loop {
        // Once the command is collected its number may be another's.
        if let (None, Some(group)) = (status, Pid::from_raw(child.pid)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let alive = match own_children() {
            Some(pids) => {
                // Stopped first, all of them: what is stopped does not fork while its siblings are killed.
                for signal in [Signal::STOP, Signal::KILL] {
                    for pid in &pids {
                        let _ = kill_process(*pid, signal);
                    }
                }
                !pids.is_empty()
            }
            // A kernel that does not list children: what `/proc` shows of them.
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

/// The children of this process, those that hide from `/proc` included; `None` where the kernel does not tell.
fn own_children() -> Option<Vec<Pid>> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let listed = std::fs::read_to_string(Path::new(&path)).ok()?;
    let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
    Some(pids.filter_map(Pid::from_raw).collect())
}

/// Whether any child is left, ended or not.
fn has_children() -> bool {
    let mut status = 0;
    // SAFETY: waitpid writes one int, into a local of ours; the flags leave every child as it is but for one that has ended.
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
