//! The Debian package, installed and started in a fresh Debian.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::engine::Engine;
use super::{Machine, Release};
use crate::spawn;

/// The version of cargo-deb.
const CARGO_DEB: &str = "3.8.0";

/// Packages the program and tries the package, if this machine has a container engine.
pub(super) fn build(release: &Release) -> Result<()> {
    release.binary()?;
    let architecture = match release.machine {
        Machine::x86_64 => "amd64",
        Machine::aarch64 => "arm64",
    };
    let name = format!("cellblock_{}_{architecture}.deb", release.version);
    let package = release.out.join(name);
    spawn(
        Command::new(cargo_deb(release)?)
            .args(["--no-build", "--no-strip", "--package", "cellblock"])
            .args(["--profile", "dist", "--target", &release.triple(), "--output"])
            .arg(&package)
            .env("CARGO_TARGET_DIR", &release.target)
            .current_dir(&release.root),
    )?;
    let Some(engine) = Engine::find().filter(|_| Machine::own().ok() == Some(release.machine)) else {
        eprintln!("not tried: a container of this machine needs podman or docker, and a package for it");
        return Ok(());
    };
    // `dist/` is the mirror for the package.
    release.image("core")?;
    let script = release.root.join("deploy/debian/try");
    engine.run(release, &script, &[&package, &release.out])
}

/// Returns the path of cargo-deb, which is compiled if it is missing. It runs for seconds, so it is
/// not optimized.
fn cargo_deb(release: &Release) -> Result<PathBuf> {
    let root = release.target.join("dist-tools");
    let program = root.join("bin/cargo-deb");
    if !program.is_file() {
        spawn(
            Command::new("cargo")
                .args([
                    "install",
                    "--quiet",
                    "--locked",
                    "cargo-deb",
                    "--version",
                    CARGO_DEB,
                    "--root",
                ])
                .arg(&root)
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
                .env("CARGO_PROFILE_RELEASE_LTO", "off"),
        )?;
    }
    Ok(program)
}
