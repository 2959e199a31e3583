//! The developer commands behind `cargo xtask`, as a library so that tests can call them.
//!
//! [`tidy`] holds the rules of this codebase that no compiler checks, [`generate`] the files that are made
//! from code, [`ci`] the steps that a change must pass, [`dist`] the build of a release.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands report to a terminal"
)]

use std::path::{Path, PathBuf};

pub mod aarch64;
pub mod bench;
pub mod ci;
pub mod dist;
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
