//! The files of the tree: all that git would track.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};

use super::tokens::{self, Token};

/// A text file of the tree.
#[derive(Debug)]
pub(super) struct File {
    /// Path below the root, with `/` between its parts.
    pub(super) path: String,
    /// The whole content.
    pub(super) text: String,
    tokens: OnceLock<Vec<Token>>,
}

impl File {
    /// Tells whether the name ends in `.extension`.
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|own| own == extension)
    }

    /// Returns the lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Returns the tokens of a Rust file, read once; none for other files.
    pub(super) fn tokens(&self) -> &[Token] {
        self.tokens.get_or_init(|| {
            if self.is("rs") {
                tokens::all(&self.text)
            } else {
                Vec::new()
            }
        })
    }

    fn new(path: String, text: String) -> Self {
        Self {
            path,
            text,
            tokens: OnceLock::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn of(path: &str, text: &str) -> Self {
        Self::new(path.to_owned(), text.to_owned())
    }
}

/// Reads every text file below `root` that no `.gitignore` leaves out.
pub(super) fn files(root: &Path) -> Result<Vec<File>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--deduplicate"])
        .arg("--exclude-per-directory=.gitignore")
        .current_dir(root)
        .output()
        .context("start `git ls-files`")?;
    ensure!(
        listed.status.success(),
        "`git ls-files` failed: {}",
        String::from_utf8_lossy(&listed.stderr).trim()
    );
    let listed = String::from_utf8(listed.stdout).context("read `git ls-files`")?;
    let mut paths: Vec<_> = listed.split_terminator('\0').collect();
    paths.sort_unstable();
    let mut files = Vec::new();
    for path in paths {
        let place = root.join(path);
        if !place.symlink_metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        let text = match fs::read_to_string(&place) {
            Ok(text) => text,
            // Pictures and other binary files have no rules; one that was removed meanwhile has none either.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("read `{path}`")),
        };
        files.push(File::new(path.to_owned(), text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_are_read_and_ignored_and_binary_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in [
            (".gitignore", &b"target/\n"[..]),
            (".ci/run", b"true\n"),
            ("target/made.rs", b"//! Made.\n"),
            ("chart.png", b"\x89PNG\xff\xfe"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let made = Command::new("git").arg("init").arg(folder.path()).output();
        assert!(made.unwrap().status.success());
        let files = files(folder.path()).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".ci/run", ".gitignore"]);
    }
}
