//! Building and running the benchmark with optimisation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The backends whose sandboxes are machines, which `cellblock-walls` measures.
const WALLS: [&str; 2] = ["gvisor", "microvm"];

/// Runs it in the workspace's root, and answers whether it went well. It shares the image with the tests unless `CELLBLOCK_HOME` names
/// another home.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let home = std::env::var_os("CELLBLOCK_HOME")
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| root.join("target/cellblock-home").into());
    let (walls, arguments): (Vec<_>, Vec<_>) = arguments
        .iter()
        .cloned()
        .partition(|argument| WALLS.contains(&argument.as_str()));
    if arguments.iter().any(|argument| argument == "gateway")
        || !arguments.iter().any(|argument| argument == "--only")
        || !walls.is_empty()
    {
        // The gateway is measured as the program that people run; machines run it inside.
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
    if !walls.is_empty() {
        let measured = Command::new(env!("CARGO"))
            .args([
                "bench",
                "--package",
                "cellblock-walls",
                "--bench",
                "machines",
                "--",
            ])
            .args(&walls)
            .env("CELLBLOCK_HOME", &home)
            .current_dir(root)
            .status()
            .context("start cargo")?;
        // `--only gvisor microvm` names nothing else.
        if !measured.success() || arguments == ["--only"] {
            return Ok(measured.success());
        }
    }
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--package", "cellblock-bench", "--"])
        .args(&arguments)
        .env("CELLBLOCK_HOME", home)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}
