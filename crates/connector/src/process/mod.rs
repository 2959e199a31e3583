//! Programs that are started on the host: each in its own process group, with little of our
//! environment, and ended with everything that it started.

mod lines;
mod log;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

pub use lines::{Line, Lines};
pub use log::log_lines;

/// A program that can be started.
#[derive(Clone, PartialEq, Eq)]
pub struct ProgramLaunch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of this process that it inherits. All others may be secrets.
    pub inherited: &'static [&'static str],
    /// Further environment variables. May contain secrets.
    pub environment: Vec<(String, String)>,
    /// Working directory; by default, that of this process.
    pub folder: Option<PathBuf>,
}

impl fmt::Debug for ProgramLaunch {
    /// Without arguments and values, which may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("ProgramLaunch")
            .field("command", &self.command.first())
            .field("environment", &names)
            .finish_non_exhaustive()
    }
}

/// A program that was started, and its streams.
#[derive(Debug)]
pub struct ProgramStreams {
    /// Ends the program when it is dropped.
    pub process: Process,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
}

impl ProgramLaunch {
    /// Starts the program.
    pub fn start(&self) -> io::Result<ProgramStreams> {
        let Some((first, arguments)) = self.command.split_first() else {
            return Err(io::Error::other("the command is empty"));
        };
        let inherited = self.inherited.iter();
        let inherited = inherited.filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(first);
        command
            .args(arguments)
            .env_clear()
            .envs(inherited)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = self.folder.as_deref().filter(|it| !it.as_os_str().is_empty()) {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // Created before anything can fail, so that the process is ended on every path.
        let process = Process::new(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(io::Error::other("the process has no streams"));
        };
        Ok(ProgramStreams {
            process,
            stdin,
            stdout,
            stderr,
        })
    }
}

/// The groups of all processes.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Kills all programs with everything that they started, for a host that exits without dropping its values.
pub fn end_programs() {
    let groups = std::mem::take(&mut *groups());
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock()
}

/// A process with everything that it started. Dropping it kills all of it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// As long as the child was not reaped, no other group has this number.
    group: Option<Pid>,
}

impl Process {
    fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        groups().extend(group.map(Pid::as_raw_pid));
        Self { child, group }
    }

    /// Kills the remaining processes, and waits for the main one.
    pub async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        self.child.wait().await.ok()
    }

    /// Returns whether the main process has exited.
    pub fn has_exited(&self) -> bool {
        // It is not reaped, so that no other group gets its number.
        let Some(group) = self.group else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(group), options).is_ok_and(|status| status.is_some())
    }

    /// Kills all of it, without waiting for the end.
    pub(crate) fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // An error means that none remains.
            let _ = kill_process_group(group, Signal::KILL);
            groups().remove(&group.as_raw_pid());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
