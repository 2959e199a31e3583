//! The folder of a connector. Nothing outside it is opened: no path with `..`, and no symbolic link.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use glob::{MatchOptions, Pattern};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Maximum number of files and folders that one search looks at.
const ENTRIES: usize = 100_000;
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// An open folder.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Opens the operator's folder, which may be behind a link.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a file to read it.
    pub(super) fn file(&self, path: &str) -> std::io::Result<File> {
        // A named pipe must not block.
        let file = File::from(self.beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(std::io::Error::other("it is not a regular file"))
        }
    }

    fn beneath(&self, path: &str, flags: OFlags) -> std::io::Result<OwnedFd> {
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(
                self.0.as_fd(),
                path,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                within,
            ) {
                Err(Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Returns the paths of the files that match a pattern, in order.
    pub(super) fn files(&self, pattern: &Pattern) -> std::io::Result<Vec<String>> {
        let parts: Vec<&str> = pattern.as_str().split('/').collect();
        let fixed = parts
            .iter()
            .take(parts.len() - 1)
            .take_while(|part| !part.contains(['*', '?', '[']));
        let start = fixed.copied().collect::<Vec<_>>().join("/");
        let deep = parts.contains(&"**");
        let mut found = Vec::new();
        let mut seen = 0;
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            let path = if folder.is_empty() { "." } else { &folder };
            let opened = match self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(opened) => opened,
                // It is a link, or was removed meanwhile.
                Err(error)
                    if matches!(
                        Errno::from_io_error(&error),
                        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            for entry in Dir::read_from(&opened)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else {
                    continue;
                };
                if matches!(name, "." | "..") {
                    continue;
                }
                seen += 1;
                if seen > ENTRIES {
                    let text = format!(
                        "there are more than {ENTRIES} files and folders to search; use a narrower pattern"
                    );
                    return Err(std::io::Error::other(text));
                }
                let path = if folder.is_empty() {
                    name.to_owned()
                } else {
                    format!("{folder}/{name}")
                };
                match entry.file_type() {
                    FileType::Directory if deep || path.split('/').count() < parts.len() => {
                        folders.push(path);
                    }
                    FileType::RegularFile | FileType::Unknown if pattern.matches_with(&path, MATCHING) => {
                        found.push(path);
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        Ok(found)
    }
}
