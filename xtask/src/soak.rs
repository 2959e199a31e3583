//! Building and running the soak: many sessions one after the other, and what is left of them.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo;

/// Runs it in the workspace's root, and answers whether nothing was left.
pub fn run(root: &Path, rounds: u32) -> Result<bool> {
    let mut soak = cargo(root);
    soak.args(["run", "--package", "cellblock-interpreter", "--example", "soak"]);
    soak.args(["--", "--rounds", &rounds.to_string()]);
    Ok(soak.status().context("start cargo")?.success())
}
