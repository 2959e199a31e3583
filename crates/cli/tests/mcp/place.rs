//! The two servers that clients are asked to use: a command, and a URL with a key.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;

/// Toolsets of which everything is tested.
const TOOLSETS: [&str; 3] = ["interpreter", "workbench", "derivation"];
const CONFIG: &str = "mcp: {toolsets: [interpreter, workbench, derivation]}\n";
/// Quota that a person would not use up in a minute, and tests do.
const QUOTA: [&str; 2] = ["--quota", "cells_per_minute=unlimited"];

/// The server over HTTP that tests share as long as any of them runs.
static SHARED: Mutex<Weak<GatewayProcess>> = Mutex::new(Weak::new());
/// Number of keys that were made: each has a separate name.
static KEYS: AtomicU32 = AtomicU32::new(0);

/// The folder of a language's clients.
pub(crate) fn folder(language: &str) -> PathBuf {
    let clients = cellblock_testkit::workspace_root().join("tests/clients/mcp");
    clients.join(language)
}

/// Returns the command that starts `cellblock mcp` with every toolset.
pub(crate) fn command() -> Vec<String> {
    let binary = cellblock_testkit::binary().unwrap();
    let mut command = vec![binary.to_str().unwrap().to_owned(), "mcp".to_owned()];
    for toolset in TOOLSETS {
        command.extend(["--toolset".to_owned(), toolset.to_owned()]);
    }
    command
}

/// A program of tests, in its folder, which finds the home that tests share.
pub(crate) fn program(name: impl Into<PathBuf>, language: &str) -> Command {
    let mut program = Command::new(name.into());
    program
        .current_dir(folder(language))
        .env("CELLBLOCK_HOME", cellblock_testkit::home().unwrap())
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    program
}

/// Tells a program that its server is a command.
pub(crate) fn over_stdio(program: &mut Command) {
    program.env("CELLBLOCK_MCP_COMMAND", json!(command()).to_string());
}

/// Tells a program that its server is a URL, with a key that nobody else has.
pub(crate) fn over_http(program: &mut Command, served: &GatewayProcess) {
    program
        .env("CELLBLOCK_MCP_URL", &served.url)
        .env("CELLBLOCK_KEY", served.key().unwrap());
}

/// Runs it to its end; what it printed is the error of one that failed.
pub(crate) fn passes(program: &mut Command) -> Output {
    let output = program.output().unwrap();
    assert!(
        output.status.success(),
        "{program:?} failed\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A running `cellblock serve`. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct GatewayProcess {
    child: Child,
    folder: TempDir,
    /// Address at which it speaks MCP.
    pub(crate) url: String,
}

impl GatewayProcess {
    /// The one that tests share.
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock();
        if let Some(served) = shared.upgrade() {
            return served;
        }
        let served = Arc::new(Self::start().unwrap());
        *shared = Arc::downgrade(&served);
        served
    }

    fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("cellblock.yaml"), CONFIG)?;
        // Where there is a key, nobody is answered without one.
        key_in(&folder)?;
        let mut child = cellblock(&folder)?
            .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("it has no stdout")?;
        let mut served = Self {
            child,
            folder,
            url: String::new(),
        };
        let mut first = String::new();
        let mut lines = BufReader::new(stdout);
        lines.read_line(&mut first)?;
        // What it prints later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let address = first.trim_end().strip_prefix("listening on ");
        served.url = format!("{}/mcp", address.with_context(|| format!("it said `{first}`"))?);
        Ok(served)
    }

    /// A key of its own for whoever asks: what belongs to one is not there for another.
    pub(crate) fn key(&self) -> Result<String> {
        key_in(&self.folder)
    }
}

fn key_in(folder: &TempDir) -> Result<String> {
    let name = format!("judge-{}", KEYS.fetch_add(1, Ordering::Relaxed));
    let made = cellblock(folder)?
        .args(["key", "create", &name])
        .args(QUOTA)
        .output()?;
    let told = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "no key was made: {told}");
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// The command, with a state of its own.
fn cellblock(folder: &TempDir) -> Result<Command> {
    let mut command = Command::new(cellblock_testkit::binary()?);
    command
        .env("CELLBLOCK_HOME", cellblock_testkit::home()?)
        .env("CELLBLOCK_SERVE__STATE", folder.path().join("state"))
        .env("CELLBLOCK_LOG", "error")
        .current_dir(folder.path())
        .stdin(Stdio::null());
    Ok(command)
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}
