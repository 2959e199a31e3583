//! The files of the tree: all that git would track.

use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

use anyhow::{Context as _, Result};
use ignore::WalkBuilder;

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
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .git_exclude(false)
        .parents(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.context("walk the tree")?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let text = match fs::read_to_string(entry.path()) {
            Ok(text) => text,
            // Pictures and other binary files have no rules; one that was removed meanwhile has none either.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("read `{}`", entry.path().display())),
        };
        let path = entry.path().strip_prefix(root).context("stay below the root")?;
        files.push(File::new(path.display().to_string(), text));
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
            (".git/config", b"[core]\n"),
            ("chart.png", b"\x89PNG\xff\xfe"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let files = files(folder.path()).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".ci/run", ".gitignore"]);
    }
}
