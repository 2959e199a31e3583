//! Building and running the soak: many sessions one after the other, and what is left of them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs it in the workspace's root, and answers whether nothing was left.
pub fn run(root: &Path, rounds: u32) -> Result<bool> {
    let status = Command::new(env!("CARGO"))
        .args([
            "run",
            "--package",
            "cellblock-interpreter",
            "--example",
            "soak",
            "--",
            "--rounds",
        ])
        .arg(rounds.to_string())
        .current_dir(root)
        .status()
        .context("start cargo")?;
    Ok(status.success())
}
