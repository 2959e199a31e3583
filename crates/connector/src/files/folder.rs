//! A folder of the host. Nothing outside it is opened: no path with `..`, and no symbolic link.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::search::{Search, joined};

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
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

    /// Returns the paths of the files that a search finds.
    pub(super) fn files(&self, search: &mut Search<'_>) -> std::io::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut folders = vec![search.start()];
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
                search.count().map_err(std::io::Error::other)?;
                let path = joined(&folder, name);
                match entry.file_type() {
                    FileType::Directory if search.enters(&path) => folders.push(path),
                    FileType::RegularFile | FileType::Unknown if search.finds(&path) => found.push(path),
                    _ => {}
                }
            }
        }
        Ok(found)
    }
}
