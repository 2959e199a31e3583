//! The release as a tarball, and the hashes of all files.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::Release;
use crate::spawn;

/// The file with the hashes.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Files that are packed with the program, by their paths in the repository.
const BESIDE: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "deploy/seccomp.json"];

/// Packs the program and what lies beside it. The same files always give the same bytes.
pub(super) fn tarball(release: &Release) -> Result<()> {
    let staging = tempfile::tempdir()?;
    let path = release.file(".tar.gz");
    let folder = release.file("");
    let folder = staging.path().join(folder.file_name().unwrap_or_default());
    fs::create_dir(&folder)?;
    let mut files = vec![(release.binary()?, "cellblock")];
    files.extend(BESIDE.map(|file| (release.root.join(file), file)));
    for (from, file) in files {
        let name = file.rsplit('/').next().unwrap_or(file);
        fs::copy(&from, folder.join(name)).with_context(|| format!("copy `{}`", from.display()))?;
    }
    spawn(
        Command::new("tar")
            .args(["--create", "--gzip", "--sort=name", "--mtime=2000-01-01 00:00Z"])
            .args(["--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go=rX"])
            .arg("--file")
            .arg(path)
            .arg("--directory")
            .arg(staging.path())
            .arg(folder.file_name().unwrap_or_default()),
    )
}

/// Writes the SHA-256 of every file of the release.
pub(super) fn sums(release: &Release) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&release.out)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != SUMS {
            names.push(entry.file_name());
        }
    }
    names.sort_unstable();
    let sums = fs::File::create(release.out.join(SUMS))?;
    spawn(
        Command::new("sha256sum")
            .arg("--")
            .args(names)
            .current_dir(&release.out)
            .stdout(Stdio::from(sums)),
    )
}
