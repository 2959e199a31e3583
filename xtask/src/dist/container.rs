//! The container images, and every way to start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::Release;
use super::engine::{self, Engine};
use super::images::IMAGES;
use crate::spawn;

/// Builds the container images in the engine's own store, as `cellblock:core` and so on, and runs
/// each in every way of the guide. Without an engine, buildah builds them.
pub(super) fn build(release: &Release) -> Result<()> {
    release.needs_own_machine("container")?;
    let context = context(release)?;
    let Some(engine) = Engine::find() else {
        return with_buildah(release, &context);
    };
    for image in IMAGES {
        let tag = format!("cellblock:{image}");
        spawn(
            engine
                .command()
                .args(["build", "--network", "host", "--tag", &tag, "--build-arg"])
                .arg(format!("BASE={}", engine::base()))
                .args(["--build-arg", &format!("IMAGE={image}"), "--file"])
                .arg(release.root.join("deploy/container/Containerfile"))
                .arg(&context),
        )?;
        spawn(Command::new(release.root.join("deploy/container/try")).args([engine.name(), &tag]))?;
    }
    Ok(())
}

/// Builds the container images without an engine, and runs one cell in each: buildah starts
/// containers only to build them.
fn with_buildah(release: &Release, context: &Path) -> Result<()> {
    let mut version = Command::new("buildah");
    version.arg("--version").stdout(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        bail!("building containers needs podman or docker and a running engine, or buildah");
    }
    for image in IMAGES {
        let script = release.root.join("deploy/container/buildah");
        spawn(Command::new(script).arg(context).arg(image))?;
    }
    Ok(())
}

/// Gathers the files that the build copies.
fn context(release: &Release) -> Result<PathBuf> {
    let context = release.target.join("dist-container");
    let mirror = context.join("mirror");
    if context.exists() {
        fs::remove_dir_all(&context)?;
    }
    fs::create_dir_all(&mirror)?;
    copy(&release.binary()?, &context.join("cellblock"))?;
    copy(
        &release.root.join("deploy/seccomp.json"),
        &context.join("seccomp.json"),
    )?;
    let mut files = vec![release.out.join("images.json")];
    for image in IMAGES {
        files.push(release.image(image)?);
    }
    for file in files {
        copy(&file, &mirror.join(file.file_name().unwrap_or_default()))?;
    }
    Ok(context)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to).or_else(|_| crate::copy(from, to))
}
