//! Packages for programs of the host, which are in no image.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::build::remove;
use super::error::{ImageError, IoResultExt, Result};
use super::hex;
use super::home::Home;
use super::interpreter::HostInterpreter;
use super::layer::Requirement;
use super::lock::Lock;
use super::progress::Sink;
use super::uv::{self, Uv};

/// Returns a folder with these packages for an interpreter of the host, which finds them by
/// `PYTHONPATH`. Creates the folder if it is missing; packages are resolved only then.
pub fn host_packages(
    home: &Home,
    python: &Path,
    requirements: &[Requirement],
    sink: &Sink,
) -> Result<PathBuf> {
    let found = HostInterpreter::ask(python).ok_or_else(|| ImageError::Broken {
        problem: format!(
            "`{}` cannot be run, or is not a regular build of CPython",
            python.display()
        ),
    })?;
    let mut wanted: Vec<_> = requirements.iter().map(ToString::to_string).collect();
    wanted.sort();
    let key = format!(
        "{}\n{}\n{}",
        found.program.display(),
        found.full_version(),
        wanted.join("\n")
    );
    let key = hex(&Sha256::digest(key));
    let folder = home.root().join("packages").join(&key);
    if folder.is_dir() {
        return Ok(folder);
    }
    let lock = Lock::exclusive(&home.lock(&format!("packages-{key}")), || {
        sink.line("another process is installing the same packages".to_owned());
    })?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let uv = Uv::find_or_fetch(home, &lock, sink)?;
    let staging = home.staging(&key);
    remove(&staging)?;
    let mut command = uv.command(&["pip", "install"])?;
    // Copies, because the program may write to them.
    command.args(["--link-mode", "copy", "--python"]).arg(python);
    command.arg("--target").arg(&staging).arg("--").args(&wanted);
    uv::run(&mut command, "install the packages", sink)?;
    let parent = home.root().join("packages");
    fs::create_dir_all(&parent).at("create", &parent)?;
    fs::rename(&staging, &folder).at("create", &folder)?;
    Ok(folder)
}
