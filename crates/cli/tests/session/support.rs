//! A home of its own for each test, with the images that all tests share, so that nobody stops
//! another's sessions.

use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::wait::block_until_ok;
use cellblock_testkit::{Cli, CommandOutput, ORDINARY_UID, RunningCli, binary, home, small_image};
use rustix::process::geteuid;
use serde_json::Value;

/// Maximum time for something that happens in the background.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Parts of a home that all tests share.
const SHARED: [&str; 4] = ["images", "refs", "cache", "layers"];

/// A home, and a directory to work in. Its sessions end with it.
#[derive(Debug)]
pub(crate) struct World {
    folder: tempfile::TempDir,
    ordinary: bool,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        Self::of(false)
    }

    /// One of a user without privileges, in which all commands run as that user.
    pub(crate) fn of_an_ordinary_user() -> Result<Self> {
        let world = Self::of(true)?;
        if geteuid().is_root() {
            for folder in [world.folder.path().to_owned(), world.work(), world.home()] {
                chown(folder, Some(ORDINARY_UID), Some(ORDINARY_UID))?;
            }
        }
        Ok(world)
    }

    fn of(ordinary: bool) -> Result<Self> {
        let world = Self {
            folder: tempfile::tempdir()?,
            ordinary,
        };
        std::fs::create_dir(world.work())?;
        std::fs::create_dir(world.home())?;
        for part in SHARED {
            let shared = home()?.join(part);
            std::fs::create_dir_all(&shared)?;
            symlink(shared.canonicalize()?, world.home().join(part))?;
        }
        Ok(world)
    }

    /// Returns the directory in which commands run.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The directories of sessions that are there.
    pub(crate) fn places(&self) -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.home().join("sessions"))?;
        Ok(entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect())
    }

    /// A command in this home.
    pub(crate) fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Cli {
        let cli = Cli::new(arguments)
            .env("CELLBLOCK_HOME", self.home())
            .env("CELLBLOCK_FROZEN", "off")
            .folder(self.work());
        if self.ordinary { cli.ordinary_user() } else { cli }
    }

    /// Runs a command that has to succeed; gives its stdout without the last newline.
    pub(crate) fn said<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let finished = self.cli(arguments).run()?;
        ensure!(finished.code() == 0, "{finished:?}");
        Ok(finished.stdout.trim_end_matches('\n').to_owned())
    }

    /// Starts a session on the small image.
    pub(crate) fn start(&self, options: &[&str]) -> Result<String> {
        let file = small_image()?;
        // Which file led to which image is known to the user who has built it alone.
        let image = if self.ordinary { "cellblock-tests" } else { file };
        let arguments = ["session", "start", "--image", image];
        let id = self.said(arguments.into_iter().chain(options.iter().copied()))?;
        ensure!(id.len() == 20, "`{id}` is no id");
        Ok(id)
    }

    /// Calls a tool.
    pub(crate) fn call(&self, id: &str, tool: &str, arguments: &Value) -> Result<CommandOutput> {
        self.calling(id, tool, arguments, &[]).run()
    }

    /// The command that calls a tool, with more options.
    pub(crate) fn calling(&self, id: &str, tool: &str, arguments: &Value, more: &[&str]) -> Cli {
        let arguments = arguments.to_string();
        let call = ["tools", "call", tool, "--session", id, "--args", &arguments];
        self.cli(call.into_iter().chain(more.iter().copied()))
    }

    /// Starts a call that does not end by itself, and waits until the session is busy with it.
    pub(crate) fn busy(&self, id: &str) -> Result<RunningCli> {
        let arguments = serde_json::json!({ "command": ["sleep", "250"], "timeout": 300 });
        let running = self.calling(id, "sandbox_exec", &arguments, &[]).start()?;
        until("the call's start", || {
            Ok(self.listed(id)?.context("gone")?["state"] == "busy")
        })?;
        Ok(running)
    }

    /// Runs a command in the sandbox; gives the result.
    pub(crate) fn exec(&self, id: &str, command: &[&str]) -> Result<Value> {
        let finished = self.call(id, "sandbox_exec", &serde_json::json!({ "command": command }))?;
        finished.json()
    }

    /// The session's entry in the list.
    pub(crate) fn listed(&self, id: &str) -> Result<Option<Value>> {
        let listed = self.cli(["session", "list", "--json"]).run()?.json()?;
        let sessions = listed["sessions"].as_array().context("no sessions")?;
        Ok(sessions.iter().find(|it| it["id"] == id).cloned())
    }

    /// The process behind a session.
    pub(crate) fn host(&self, id: &str) -> Result<u32> {
        let listed = self.listed(id)?.context("it is not listed")?;
        Ok(u32::try_from(listed["process"].as_u64().context("no process")?)?)
    }

    /// Runs a shell script with `$cellblock` and `$image`.
    pub(crate) fn script(&self, script: &str) -> Result<(i32, String, String)> {
        let output = Command::new("timeout")
            .args(["120", "sh", "-euc", script])
            .current_dir(self.work())
            .env("CELLBLOCK_HOME", self.home())
            .env("CELLBLOCK_FROZEN", "off")
            .env("cellblock", binary()?)
            .env("image", small_image()?)
            .stdin(Stdio::null())
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().context("killed by a signal")?;
        Ok((code, text(&output.stdout), text(&output.stderr)))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.cli(["session", "stop", "--all"]).run();
        if self.home().join("warm").is_dir() {
            let _ = self.cli(["warm", "stop"]).run();
        }
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> Result<bool>) -> Result<()> {
    block_until_ok(|| match so() {
        Ok(false) => Err(what),
        Ok(true) => Ok(Ok(())),
        Err(error) => Ok(Err(error)),
    })
}
