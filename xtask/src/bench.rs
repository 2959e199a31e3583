//! Building and running the benchmark with optimisation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs it in the workspace's root, and answers whether it went well.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--package", "cellblock-bench", "--"])
        .args(arguments)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}
