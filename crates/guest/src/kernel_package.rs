//! The Python kernel package, carried inside the binary so that host and kernel are always of one generation.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

static PACKAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/python/cellblock_kernel");

/// Where the package's parent directory appears inside.
pub const ROOT: &str = "/opt/cellblock";

/// Every file of the package with its path inside.
pub fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    collect(&PACKAGE, &Path::new(ROOT).join("cellblock_kernel"), &mut files);
    files
}

fn collect(dir: &Dir<'_>, at: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for file in dir
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "py"))
    {
        files.push((at.join(file.path()), file.contents().to_vec()));
    }
    for dir in dir.dirs() {
        collect(dir, at, files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_holds_the_template_at_its_place() {
        let template = Path::new("/opt/cellblock/cellblock_kernel/template.py");
        assert!(
            files()
                .iter()
                .any(|(path, content)| path == template && !content.is_empty())
        );
    }
}
