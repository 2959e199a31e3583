//! A Python process per run: plain, in `bwrap`, and in `runsc do`. None of them keeps anything between runs.

use std::ffi::OsString;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::python::Python;

/// A way to start a Python process.
#[derive(Clone, Debug)]
pub(crate) struct PythonLauncher {
    /// In the names of series.
    pub(crate) who: &'static str,
    /// Command before the interpreter.
    prefix: Vec<OsString>,
    python: Python,
}

impl PythonLauncher {
    /// No wall at all.
    pub(crate) fn plain(python: &Python) -> Self {
        Self {
            who: "python",
            prefix: Vec::new(),
            python: python.clone(),
        }
    }

    /// Namespaces and a small read-only tree by bubblewrap: no seccomp filter, no cgroups, no Landlock.
    pub(crate) fn bwrap(python: &Python) -> Result<Self> {
        let mut prefix: Vec<OsString> = [
            "bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/usr",
            "/usr",
            "--ro-bind-try",
            "/lib",
            "/lib",
            "--ro-bind-try",
            "/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
        ]
        .map(OsString::from)
        .into();
        for shown in [&python.root, &python.place] {
            prefix.extend(["--ro-bind".into(), shown.into(), shown.into()]);
        }
        prefix.extend(["--chdir".into(), "/tmp".into()]);
        Self::tried("bwrap", prefix, python)
    }

    /// A kernel of its own by gVisor; the host's files are seen through an overlay.
    pub(crate) fn runsc(python: &Python) -> Result<Self> {
        let prefix = ["runsc", "--network=none", "--ignore-cgroups", "do"].map(OsString::from);
        Self::tried("runsc", prefix.into(), python)
    }

    fn tried(who: &'static str, prefix: Vec<OsString>, python: &Python) -> Result<Self> {
        let wrapped = Self {
            who,
            prefix,
            python: python.clone(),
        };
        wrapped.time("print(1+1)", 2)?;
        Ok(wrapped)
    }

    pub(crate) fn command(&self, code: &str) -> Command {
        let mut command = match self.prefix.split_first() {
            None => self.python.command(),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command
                    .args(arguments)
                    .arg(&self.python.program)
                    .args(["-s", "-P"])
                    .env_clear()
                    .envs(self.python.environment.iter().cloned());
                command
            }
        };
        command.args(["-c", code]).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end, reading all that it prints: at least so many bytes.
    pub(crate) fn run(&self, code: &str, bytes: usize) -> Result<Output> {
        let output = self
            .command(code)
            .output()
            .with_context(|| format!("start {}; is it installed?", self.who))?;
        ensure!(
            output.status.success() && output.stdout.len() >= bytes,
            "{} ended with {} after {} bytes: {}",
            self.who,
            output.status,
            output.stdout.len(),
            String::from_utf8_lossy(&output.stderr)
                .chars()
                .take(2000)
                .collect::<String>()
        );
        Ok(output)
    }

    /// Returns the duration of that.
    pub(crate) fn time(&self, code: &str, bytes: usize) -> Result<Duration> {
        let started = Instant::now();
        self.run(code, bytes)?;
        Ok(started.elapsed())
    }

    /// Whether there is anything around the process.
    pub(crate) fn is_walled(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Returns the duration of `true`.
    pub(crate) fn time_true(&self) -> Result<Duration> {
        let (program, arguments) = self.prefix.split_first().context("nothing is around it")?;
        let mut command = Command::new(program);
        command.args(arguments).arg("/usr/bin/true").stdin(Stdio::null());
        let started = Instant::now();
        let output = command.output().with_context(|| format!("start {}", self.who))?;
        let elapsed = started.elapsed();
        ensure!(
            output.status.success(),
            "{} ended with {}",
            self.who,
            output.status
        );
        Ok(elapsed)
    }

    /// Returns the version that the tool prints, on one line.
    pub(crate) fn version(program: &str) -> Option<String> {
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    }
}
