//! Programs that run beside a test, and programs that are tests themselves.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The folder of a language's clients.
pub(crate) fn folder(language: &str) -> PathBuf {
    cellblock_testkit::workspace_root()
        .join("tests/clients")
        .join(language)
}

/// The interpreter that has the packages that a folder pins.
pub(crate) fn python(pins: &str) -> PathBuf {
    folder(pins).join(".venv/bin/python")
}

/// The mock of a model, with one of a server of tools. It ends when this value does.
#[derive(Debug)]
pub(crate) struct Model {
    child: Child,
    /// Its address, up to the name of an operation.
    pub(crate) base: String,
    /// The address of the tools.
    pub(crate) tools: String,
}

impl Model {
    pub(crate) fn start() -> Result<Self> {
        let mut child = Command::new("node")
            .arg("model.js")
            .current_dir(folder("node"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the model")?;
        let stdout = child.stdout.take().context("the model has no stdout")?;
        let mut said = String::new();
        BufReader::new(stdout)
            .read_line(&mut said)
            .context("hear the model's address")?;
        let address = said.trim_end();
        ensure!(
            address.starts_with("http://127.0.0.1:"),
            "the model said `{address}`"
        );
        Ok(Self {
            child,
            base: format!("{address}/v1"),
            tools: format!("{address}/mcp"),
        })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Its standard input closes, at which it ends; nothing of it is worth waiting for.
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// Runs a program of tests to its end; what it printed is the error of one that failed.
pub(crate) fn passes(command: &mut Command, folder: &Path) -> Result<()> {
    let output = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
