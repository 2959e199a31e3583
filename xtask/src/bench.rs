//! Building and running the benchmark with optimisation.

use std::path::Path;

use anyhow::{Context, Result};

use crate::suite::of_package;
use crate::{cargo, image_home};

/// The backends whose sandboxes are machines, which `cellblock-walls` measures.
const WALLS: [&str; 2] = ["gvisor", "microvm"];

/// The profile of what is released: that of a first build from a clone optimizes less.
const RELEASED: &str = "dist";

/// Runs it in the workspace's root, and answers whether it went well. It shares the image with the
/// tests unless `CELLBLOCK_HOME` names another home.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let cargo = |command: &str, what: &[&str], arguments: &[&str]| -> Result<bool> {
        let mut cargo = cargo(root);
        cargo.env("CELLBLOCK_HOME", image_home(root));
        cargo.args([command, "--profile", RELEASED]);
        let status = cargo.args(what).args(arguments).status();
        Ok(status.context("start cargo")?.success())
    };
    let arguments = arguments.iter().map(String::as_str);
    let (walls, arguments): (Vec<_>, Vec<_>) = arguments.partition(|argument| WALLS.contains(argument));
    let gateway = arguments.contains(&"gateway") || !arguments.contains(&"--only");
    // The gateway is measured as the program that people run; machines run it inside.
    if (gateway || !walls.is_empty()) && !cargo("build", &["--bin", "cellblock"], &of_package("cellblock"))? {
        return Ok(false);
    }
    if !walls.is_empty() {
        let machines = ["--package", "cellblock-walls", "--bench", "machines", "--"];
        let measured = cargo("bench", &machines, &walls)?;
        // `--only gvisor microvm` names nothing else.
        if !measured || arguments == ["--only"] {
            return Ok(measured);
        }
    }
    cargo("run", &["--package", "cellblock-bench", "--"], &arguments)
}
