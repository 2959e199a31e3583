//! Building and running the benchmark with optimisation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::suite::of_package;

/// The backends whose sandboxes are machines, which `cellblock-walls` measures.
const WALLS: [&str; 2] = ["gvisor", "microvm"];

/// The profile of what is released: that of a first build from a clone optimizes less.
const RELEASED: &str = "dist";

/// Runs it in the workspace's root, and answers whether it went well. It shares the image with the
/// tests unless `CELLBLOCK_HOME` names another home.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let home = std::env::var_os("CELLBLOCK_HOME")
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| root.join("target/cellblock-home").into());
    let (walls, arguments): (Vec<_>, Vec<_>) = arguments
        .iter()
        .cloned()
        .partition(|argument| WALLS.contains(&argument.as_str()));
    let gateway = arguments.iter().any(|argument| argument == "gateway")
        || !arguments.iter().any(|argument| argument == "--only");
    // The gateway is measured as the program that people run; machines run it inside.
    if (gateway || !walls.is_empty()) && !build(root)? {
        return Ok(false);
    }
    if !walls.is_empty() {
        let measured = Command::new(env!("CARGO"))
            .args([
                "bench",
                "--profile",
                RELEASED,
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
        .args(["run", "--profile", RELEASED, "--package", "cellblock-bench", "--"])
        .args(&arguments)
        .env("CELLBLOCK_HOME", home)
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}

/// Builds the program, and tells whether it could be built.
fn build(root: &Path) -> Result<bool> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--profile", RELEASED, "--bin", "cellblock"])
        .args(of_package("cellblock"))
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(built.success())
}
