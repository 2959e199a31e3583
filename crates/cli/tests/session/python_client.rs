//! The Python client beside warm hosts.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{binary, small_image, workspace_root};
use serde_json::Value;

use crate::support::World;

#[test]
fn sessions_of_the_python_client_use_warm_hosts_as_runs_do() -> Result<()> {
    let world = World::new()?;
    let image = small_image()?;
    let built = world.said(["image", "build", image, "--json"])?;
    let manifest: Value = serde_json::from_str(&built)?;
    let field = |name: &str| manifest[name].as_str().context("the manifest lacks a field");
    let python = world
        .home()
        .join("images")
        .join(field("id")?)
        .join("python")
        .join(field("interpreter")?);
    let folder = workspace_root().join("python");
    let ran = Command::new("timeout")
        .arg("600")
        .arg(python)
        .args(["-B", "-W", "error", "-m", "unittest", "tests.test_warm"])
        .current_dir(&folder)
        .env("PYTHONPATH", folder.join("src"))
        .env("CELLBLOCK_EXECUTABLE", binary()?)
        .env("CELLBLOCK_HOME", world.home())
        .env("CELLBLOCK_TEST_IMAGE", image)
        .output()?;
    let report = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success() && !report.contains("skipped"), "{report}");
    Ok(())
}
