//! The developer commands behind `cargo xtask`, as a library so that tests can call them.
//!
//! [`tidy`] holds the rules of this codebase that no compiler checks, [`generate`] the files that
//! are made from code, [`ci`] the steps that a change must pass, [`dist`] the build of a release,
//! [`footprint`] how big it may be.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands report to a terminal"
)]

use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

pub mod aarch64;
pub mod bench;
pub mod ci;
pub mod dist;
pub mod footprint;
pub mod generate;
pub mod judges;
pub mod seccomp;
pub mod soak;
pub mod suite;
pub mod tidy;

/// Returns the root of the workspace.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns the directory for what cargo builds.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Returns the home with the images of tests, unless `CELLBLOCK_HOME` names another one.
pub(crate) fn image_home(root: &Path) -> PathBuf {
    let named = env::var_os("CELLBLOCK_HOME").filter(|named| !named.is_empty());
    let home = named.map_or_else(|| target_folder(root).join("cellblock-home"), PathBuf::from);
    path::absolute(&home).unwrap_or(home)
}

/// Returns a command of cargo in the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Runs a command, whose output is shown.
pub(crate) fn spawn(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("copy `{}` to `{}`", from.display(), to.display()))
}

/// Returns whether a capability that is missing fails its tests.
pub(crate) fn is_everything_required() -> bool {
    env::var_os("CELLBLOCK_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// Returns the path of a program on PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_an_error_with_its_status() {
        let error = spawn(Command::new("sh").args(["-c", "exit 3"]))
            .unwrap_err()
            .to_string();
        assert_eq!(error, r#""sh" "-c" "exit 3" ended with exit status: 3"#);
    }
}
