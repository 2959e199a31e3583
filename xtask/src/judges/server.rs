//! The server that programs judge.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::suite::of_package;
use crate::{cargo, image_home, target_folder};

/// The server that is judged. It ends with this.
#[derive(Debug)]
pub(super) struct JudgedServer {
    pub(super) url: String,
    child: Child,
    _state: tempfile::TempDir,
}

impl JudgedServer {
    pub(super) fn start(root: &Path) -> Result<Self> {
        let program = target_folder(root).join("debug/cellblock");
        let mut cargo = cargo(root);
        let built = cargo.arg("build").args(of_package("cellblock")).status();
        let built = built.context("start cargo")?;
        if !built.success() {
            bail!("build `cellblock`: cargo ended with {built}");
        }
        let state = tempfile::tempdir()?;
        let mut child = Command::new(program)
            .args(["serve", "--no-model", "--listen", "127.0.0.1:0"])
            .args(["--config", "tests/judges/cellblock.yaml"])
            .current_dir(root)
            .env("CELLBLOCK_HOME", image_home(root))
            .env("CELLBLOCK_SERVE__STATE", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the server")?;
        let output = child.stdout.take().context("no output of the server")?;
        let mut first = String::new();
        BufReader::new(output).read_line(&mut first)?;
        let Some(url) = first.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            bail!("the server did not start: `{first}`");
        };
        Ok(Self {
            url: url.to_owned(),
            child,
            _state: state,
        })
    }
}

impl Drop for JudgedServer {
    fn drop(&mut self) {
        // It ends its sandboxes on this signal.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
