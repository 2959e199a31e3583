//! Building and running the benchmark with optimisation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs it in the workspace's root, and answers whether it went well. It shares the image with the tests unless `CELLBLOCK_HOME` names
/// another home.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let home = std::env::var_os("CELLBLOCK_HOME")
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| root.join("target/cellblock-home").into());
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--package", "cellblock-bench", "--"])
        .args(arguments)
        .env("CELLBLOCK_HOME", home)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}
