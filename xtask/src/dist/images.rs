//! Ready images, which make the folder of a release a mirror.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::Release;
use crate::{image_home, spawn};

/// The images that a release has.
pub(super) const IMAGES: [&str; 2] = ["core", "default"];

/// Builds the images with the program of the release and writes an archive of each.
pub(super) fn export(release: &Release) -> Result<()> {
    release.needs_own_machine("images")?;
    let binary = release.binary()?;
    let home = image_home(&release.root);
    for image in IMAGES {
        let cellblock = || {
            let mut command = Command::new(&binary);
            command.env("CELLBLOCK_HOME", &home).args(["image"]);
            command
        };
        spawn(cellblock().args(["build", image]))?;
        // An earlier one has the address of its content in its name.
        if let Ok(stale) = release.image(image) {
            fs::remove_file(stale)?;
        }
        spawn(
            cellblock()
                .args(["export", image, "--index", "--out"])
                .arg(&release.out),
        )?;
    }
    Ok(())
}
