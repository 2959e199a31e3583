//! Finds the workspace, its target directory, the binary under test and the homes that tests share.

use std::env;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::user::ORDINARY_UID;

/// Returns the root of the workspace.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Returns the target directory that holds the running test.
pub fn target_dir() -> PathBuf {
    let test = env::current_exe().unwrap_or_default();
    let tagged = test
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file());
    // A documentation test runs from a temporary directory.
    tagged.map_or_else(|| workspace_root().join("target"), Path::to_path_buf)
}

/// Finds the `cellblock` binary of the profile that the running test was built with.
///
/// `CELLBLOCK_BIN` names another one.
pub fn binary() -> Result<PathBuf> {
    if let Some(named) = env::var_os("CELLBLOCK_BIN") {
        return existing(PathBuf::from(named), "correct `CELLBLOCK_BIN`");
    }
    let test = env::current_exe().context("find the running test's own path")?;
    let profile = test
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "deps"));
    let Some(profile) = profile.and_then(Path::parent) else {
        bail!(
            "`{}` is not inside a target directory; set `CELLBLOCK_BIN`",
            test.display()
        );
    };
    let repair = match profile.file_name().and_then(|name| name.to_str()) {
        Some("release") => "run `cargo build --release --features full --bin cellblock`",
        _ => "run `cargo build --features full --bin cellblock`",
    };
    existing(profile.join("cellblock"), repair)
}

fn existing(path: PathBuf, repair: &str) -> Result<PathBuf> {
    if !path.is_file() {
        bail!("no cellblock binary at `{}`; {repair}", path.display());
    }
    Ok(path)
}

/// Returns the `CELLBLOCK_HOME` that all tests share, so that the default image is built once.
pub fn home() -> Result<PathBuf> {
    let home =
        env::var_os("CELLBLOCK_HOME").map_or_else(|| target_dir().join("cellblock-home"), PathBuf::from);
    fs::create_dir_all(&home).with_context(|| format!("create `{}`", home.display()))?;
    Ok(home)
}

/// Returns the `CELLBLOCK_HOME` that tests running as [`ORDINARY_UID`] share.
pub fn ordinary_home() -> Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return home();
    }
    let home = target_dir().join("cellblock-home-ordinary");
    fs::create_dir_all(&home).with_context(|| format!("create `{}`", home.display()))?;
    chown(&home, Some(ORDINARY_UID), Some(ORDINARY_UID))
        .with_context(|| format!("give `{}` to uid {ORDINARY_UID}", home.display()))?;
    Ok(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_root_holds_the_workspace_manifest() {
        let manifest = fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.starts_with("[workspace]"));
    }

    #[test]
    fn the_target_directory_is_the_one_that_cargo_made() {
        assert!(target_dir().join("CACHEDIR.TAG").is_file());
    }

    #[test]
    fn a_missing_binary_names_the_path_and_the_command_that_builds_it() {
        let error = existing(PathBuf::from("/nonexistent/cellblock"), "run `cargo build`").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no cellblock binary at `/nonexistent/cellblock`; run `cargo build`"
        );
    }
}
