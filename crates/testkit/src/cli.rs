//! Runs the built `cellblock` binary as a user would, under a hard time limit.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::denied::without_user_namespaces;
use crate::places;
use crate::user::{as_ordinary_user, with_subordinate_ids};

/// More than any test prints on purpose; the rest is read and dropped.
const KEPT_BYTES: usize = 64 << 20;

/// Environment variables that a command inherits in addition to `PATH`: where to find interpreters, packages
/// and certificates.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "PYENV_ROOT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
];
const INHERITED_PREFIXES: [&str; 2] = ["UV_", "PIP_"];

/// One invocation of the `cellblock` binary.
#[derive(Debug)]
pub struct Cli {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    folder: Option<PathBuf>,
    limit: Duration,
    ordinary: bool,
    subordinate: bool,
    denied: Option<u32>,
}

impl Cli {
    /// Starts with the arguments; the limit is 60 seconds.
    pub fn new<S: Into<OsString>>(args: impl IntoIterator<Item = S>) -> Self {
        Self {
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: Vec::new(),
            folder: None,
            limit: Duration::from_mins(1),
            ordinary: false,
            subordinate: false,
            denied: None,
        }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Gives the bytes that the command reads from its standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Sets the time after which the command and its process group are killed.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs without privileges, with a home of its own.
    #[must_use]
    pub fn ordinary_user(mut self) -> Self {
        self.ordinary = true;
        self
    }

    /// Runs without privileges, as a user with subordinate ids.
    #[must_use]
    pub fn with_subordinate_ids(mut self) -> Self {
        self.subordinate = true;
        self.ordinary_user()
    }

    /// Runs as a user whom the kernel refuses user namespaces; needs root.
    #[must_use]
    pub fn without_user_namespaces(mut self, uid: u32) -> Self {
        self.denied = Some(uid);
        self.ordinary = uid != 0;
        self
    }

    /// Runs to the end; an error when the time limit came first.
    pub fn run(self) -> Result<CommandOutput> {
        self.start()?.finish()
    }

    /// Starts without waiting.
    pub fn start(self) -> Result<RunningCli> {
        let binary = places::binary()?;
        let home = if self.ordinary {
            places::ordinary_home()?
        } else {
            places::home()?
        };
        let mut command = if let Some(uid) = self.denied {
            without_user_namespaces(uid, &binary)
        } else if self.subordinate {
            with_subordinate_ids(&binary)
        } else if self.ordinary {
            as_ordinary_user(&binary)
        } else {
            Command::new(&binary)
        };
        command.env_clear().envs(inherited());
        command
            .env("CELLBLOCK_HOME", &home)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        if self.ordinary {
            command.env("HOME", &home);
        }
        command.envs(self.env).args(self.args);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        spawn(command, self.stdin, self.limit)
    }
}

fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            INHERITED.contains(&name) || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    })
}

fn spawn(mut command: Command, input: Vec<u8>, limit: Duration) -> Result<RunningCli> {
    let shown = format!("{command:?}");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().with_context(|| format!("start {shown}"))?;
    let deadline = Instant::now() + limit;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends without reading its input closes the pipe, which is its right.
        thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = collect(child.stdout.take().context("take the child's stdout")?);
    let stderr = collect(child.stderr.take().context("take the child's stderr")?);
    Ok(RunningCli {
        child,
        stdout,
        stderr,
        shown,
        limit,
        deadline,
        reaped: false,
    })
}

/// Reads a pipe on a thread of its own and passes on what comes, in pieces.
fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (pieces, received) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        let mut kept = 0;
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let piece = buffer[..count.min(KEPT_BYTES - kept)].to_vec();
            kept += piece.len();
            if pieces.send(piece).is_err() {
                break;
            }
        }
    });
    received
}

/// A `cellblock` command that has been started; dropping it kills its process group.
#[derive(Debug)]
pub struct RunningCli {
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    shown: String,
    limit: Duration,
    deadline: Instant,
    reaped: bool,
}

impl RunningCli {
    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the command's process group, as a terminal does.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process_group(self.group(), signal).with_context(|| format!("signal {}", self.shown))
    }

    /// Waits until something is so; an error with all output when the command ended first, or had
    /// no time left.
    pub fn until(mut self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<Self> {
        while !is_so() {
            if self.child.try_wait()?.is_some() || Instant::now() >= self.deadline {
                let ended = self.finish()?;
                bail!("never {what}\nstdout: {}\nstderr: {}", ended.stdout, ended.stderr);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(self)
    }

    /// Waits for the end; an error when the time limit came first.
    pub fn finish(mut self) -> Result<CommandOutput> {
        let (stdout, stdout_ended) = drain(&self.stdout, self.deadline);
        let (stderr, stderr_ended) = drain(&self.stderr, self.deadline);
        let status = self.wait_until_deadline()?;
        let (stdout, stderr) = (lossy(&stdout), lossy(&stderr));
        let Some(status) = status else {
            bail!(
                "{} exceeded {:?}\nstdout: {stdout}\nstderr: {stderr}",
                self.shown,
                self.limit
            );
        };
        self.reaped = true;
        if !(stdout_ended && stderr_ended) {
            bail!(
                "{} ended but left a process that holds its output\nstderr: {stderr}",
                self.shown
            );
        }
        Ok(CommandOutput {
            status,
            stdout,
            stderr,
        })
    }

    fn wait_until_deadline(&mut self) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.child.try_wait().context("wait for the command")? {
                return Ok(Some(status));
            }
            if Instant::now() >= self.deadline {
                return Ok(None);
            }
            // Both pipes are closed by now, so the end is near.
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for RunningCli {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // The leader is not reaped yet, so the group's id cannot belong to anyone else.
        let _gone_already = kill_process_group(self.group(), Signal::KILL);
        let _gone_already = self.child.wait();
    }
}

/// Takes all pieces until the pipe closes (`true`) or the deadline passes (`false`).
fn drain(pieces: &Receiver<Vec<u8>>, deadline: Instant) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        match pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => bytes.extend(piece),
            Err(RecvTimeoutError::Disconnected) => return (bytes, true),
            Err(RecvTimeoutError::Timeout) => return (bytes, false),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit status of a command, and its output.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Returns the exit code, or 128 plus the signal that ended the command, as a shell does.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default())
    }

    /// Parses the last line of standard output as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).with_context(|| format!("parse `{line}` as JSON\nstderr: {}", self.stderr))
    }
}

#[cfg(test)]
mod tests;
