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
    if arguments.iter().any(|argument| argument == "gateway")
        || !arguments.iter().any(|argument| argument == "--only")
    {
        // The gateway is measured as the program that people run.
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--release",
                "--package",
                "cellblock",
                "--bin",
                "cellblock",
            ])
            .current_dir(root)
            .status()
            .context("start cargo")?;
        if !built.success() {
            return Ok(false);
        }
    }
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--package", "cellblock-bench", "--"])
        .args(arguments)
        .env("CELLBLOCK_HOME", home)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}
