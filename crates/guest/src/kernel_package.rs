//! The Python kernel package, embedded in the binary so that host and kernel always have the same
//! version.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

static PACKAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/python/cellblock_kernel");

/// Path inside a sandbox of the package's parent directory.
pub const ROOT: &str = "/opt/cellblock";

/// Explains the missing package installer to programs that look for it along `PATH`.
const PIP: &str = include_str!("pip.sh");

/// Lists every file of the package with its path inside, and the programs beside it.
pub fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let programs = ["pip", "pip3"].map(|name| (Path::new(ROOT).join("bin").join(name), PIP.into()));
    let package = package().map(|(path, content)| (path, content.to_vec()));
    programs.into_iter().chain(package).collect()
}

/// Lists the modules of the package with their paths inside.
pub(crate) fn modules() -> Vec<(PathBuf, &'static [u8])> {
    package()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "py"))
        .collect()
}

fn package() -> impl Iterator<Item = (PathBuf, &'static [u8])> {
    let mut files = Vec::new();
    collect(&PACKAGE, &Path::new(ROOT).join("cellblock_kernel"), &mut files);
    files.into_iter()
}

fn collect(dir: &Dir<'static>, at: &Path, files: &mut Vec<(PathBuf, &'static [u8])>) {
    for file in dir.files().filter(|file| is_code(file.path())) {
        files.push((at.join(file.path()), file.contents()));
    }
    for dir in dir.dirs() {
        collect(dir, at, files);
    }
}

/// Whether a file is part of the package: modules, and what another language runs.
fn is_code(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "py" || extension == "js" || extension == "R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_contains_the_template() {
        let pip = Path::new("/opt/cellblock/bin/pip");
        assert!(files().iter().any(|(path, _)| path == pip));
        let template = Path::new("/opt/cellblock/cellblock_kernel/boot/template.py");
        assert!(
            files()
                .iter()
                .any(|(path, content)| path == template && !content.is_empty())
        );
    }
}
