//! The programs that build a release, from Python's index, in versions that are pinned by hash.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::spawn;

/// The versions. maturin builds wheels and has cargo-zigbuild inside, which alone builds tests; zig
/// links against an old glibc; uv installs and tries the result.
const VERSIONS: &str = include_str!("tools.txt");

/// A virtual environment with the tools.
#[derive(Debug)]
pub(crate) struct ReleaseTools(PathBuf);

impl ReleaseTools {
    /// Installs what is missing.
    pub(crate) fn install(folder: &Path) -> Result<Self> {
        let tools = Self(folder.to_owned());
        if !tools.program("pip").is_file() {
            // Debian has `venv` in the package python3-venv, and says so.
            spawn(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        }
        let versions = folder.join("tools.txt");
        std::fs::write(&versions, VERSIONS)?;
        spawn(
            Command::new(tools.program("pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(["--require-hashes", "--only-binary=:all:", "--requirement"])
                .arg(&versions),
        )?;
        Ok(tools)
    }

    /// Returns the folder with the tools.
    pub(super) fn folder(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// Returns the path of a tool.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Returns a command that runs a tool and finds the others.
    pub(crate) fn command(&self, name: &str) -> Result<Command> {
        let found = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.folder()].into_iter().chain(env::split_paths(&found)))?;
        let mut command = Command::new(self.program(name));
        command.env("PATH", path);
        for (name, _) in env::vars_os().filter(|(name, _)| describes_a_package(name)) {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Tells whether `cargo run` set a variable for xtask. Build scripts that look at such variables
/// would run again.
fn describes_a_package(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
        || name == "CARGO_PRIMARY_PACKAGE"
}
