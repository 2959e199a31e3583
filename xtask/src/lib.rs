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

use std::env;
use std::path::{Path, PathBuf};

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
