//! The wheel, and with it the only compilation of a release.

use std::fs;
use std::process::Stdio;

use anyhow::{Context as _, Result};

use super::Release;
use crate::spawn;

/// The oldest glibc that a release runs on: that of Debian 10, RHEL 8 and everything since.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// Prints the list of components that maturin puts into a wheel.
const SBOM: &str = "
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[name] = [name for name in wheel.namelist() if name.endswith('.cyclonedx.json')]
sys.stdout.buffer.write(wheel.read(name))
";

/// Compiles the program and packages it with the Python client. The program and the list of its
/// components also lie beside the wheel.
pub(super) fn build(release: &Release) -> Result<()> {
    let platform = format!("manylinux_{}_{}", GLIBC.0, GLIBC.1);
    spawn(
        release
            .tools
            .command("maturin")?
            .args([
                "build",
                "--zig",
                "--profile",
                "dist",
                "--locked",
                "--features",
                "full",
            ])
            .args(["--compatibility", &platform, "--target", &release.triple()])
            .arg("--out")
            .arg(&release.out)
            .env("CARGO_TARGET_DIR", &release.target)
            .current_dir(release.root.join("python")),
    )?;
    let program = release.file("");
    fs::copy(release.binary()?, &program).with_context(|| format!("write `{}`", program.display()))?;
    let name = format!(
        "cellblock-{}-py3-none-{platform}_{}.whl",
        release.version,
        release.machine.name()
    );
    let sbom = release.file(".cdx.json");
    let sbom = fs::File::create(&sbom).with_context(|| format!("write `{}`", sbom.display()))?;
    spawn(
        release
            .tools
            .command("python3")?
            .args(["-c", SBOM])
            .arg(release.out.join(name))
            .stdout(Stdio::from(sbom)),
    )
}
