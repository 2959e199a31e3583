//! The wheel, and with it the only compilation of a release.

use std::fs;

use anyhow::{Context as _, Result};

use super::{Release, spawn};

/// The oldest glibc that a release runs on: that of Debian 10, Ubuntu 20.04 and RHEL 8.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// Compiles the program and packages it with the Python client. The program's file is linked in beside the wheel.
pub(super) fn build(release: &Release) -> Result<()> {
    let (major, minor) = GLIBC;
    spawn(
        release
            .tools
            .command("maturin")?
            .args(["build", "--zig", "--profile", "dist", "--locked"])
            .args(["--compatibility", &format!("manylinux_{major}_{minor}")])
            .args(["--target", &release.triple(), "--out"])
            .arg(&release.out)
            .env("CARGO_TARGET_DIR", &release.target)
            .current_dir(release.root.join("python")),
    )?;
    let program = release.file("");
    fs::copy(release.binary()?, &program).with_context(|| format!("write `{}`", program.display()))?;
    Ok(())
}
