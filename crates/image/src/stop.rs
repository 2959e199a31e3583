//! The end of builds: an exiting process ends the programs of its builds and removes incomplete
//! results.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::{ImageError, Result};

/// State of this process's builds.
struct Builds {
    /// Whether no build may continue.
    stopped: bool,
    /// Number of builds that have not ended.
    running: usize,
    /// Their programs, each of which leads a process group.
    programs: BTreeSet<i32>,
}

static BUILDS: Mutex<Builds> = Mutex::new(Builds {
    stopped: false,
    running: 0,
    programs: BTreeSet::new(),
});
static ENDED: Condvar = Condvar::new();

/// Ends the builds of this process for good: kills their programs, with all descendants, and waits
/// for the builds to remove incomplete results.
///
/// For a process that is about to exit. A build whose future was dropped continues until then.
pub fn stop_builds(limit: Duration) {
    let mut builds = builds();
    builds.stopped = true;
    for program in &builds.programs {
        if let Some(group) = Pid::from_raw(*program) {
            // This does not harm a group that has just ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    ENDED.wait_while_for(&mut builds, |builds| builds.running > 0, limit);
}

/// A build that is waited for when builds are stopped.
#[derive(Debug)]
pub(super) struct BuildGuard(());

impl BuildGuard {
    pub(super) fn start() -> Result<Self> {
        let mut builds = builds();
        if builds.stopped {
            return Err(ImageError::Cancelled);
        }
        builds.running += 1;
        Ok(Self(()))
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        builds().running -= 1;
        ENDED.notify_all();
    }
}

/// Returns an error once builds are stopped.
pub(crate) fn check() -> Result<()> {
    if builds().stopped {
        return Err(ImageError::Cancelled);
    }
    Ok(())
}

/// Starts a program that is killed when builds are stopped.
pub(super) fn spawn(command: &mut Command) -> Result<io::Result<Child>> {
    let mut builds = builds();
    if builds.stopped {
        return Err(ImageError::Cancelled);
    }
    let spawned = command.process_group(0).spawn();
    if let Ok(child) = &spawned {
        builds.programs.insert(child.id().cast_signed());
    }
    Ok(spawned)
}

/// Waits for the end of such a program.
pub(super) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let id = child.id().cast_signed();
    if let Some(pid) = Pid::from_raw(id) {
        // As long as it is not reaped, its process id is not reused.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ended = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
    }
    builds().programs.remove(&id);
    child.wait()
}

/// Waits for its end, but no longer than `limit`; then kills what is left of it and of its descendants.
pub(super) fn wait_within(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let start = Instant::now();
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while let Ok(None) | Err(Errno::INTR) = waitid(WaitId::Pid(pid), options)
            && start.elapsed() < limit
        {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(pid, Signal::KILL);
    }
    wait(child)
}

fn builds() -> MutexGuard<'static, Builds> {
    BUILDS.lock()
}
