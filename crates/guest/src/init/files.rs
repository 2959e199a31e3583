//! Files of a room, served to the host.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::path::{Refusal, Roots};

/// Most bytes in one answer.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// Reads a part of a regular file; the flag tells whether its end was reached.
pub(super) fn read(roots: &Roots, path: &str, offset: u64, length: u64) -> Result<(Vec<u8>, bool), Refusal> {
    // Without NONBLOCK the open of a FIFO would wait for a writer.
    let file = roots
        .place(path)?
        .open(OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    require_regular(&file)?;
    let wanted = usize::try_from(length.min(MAX_READ)).unwrap_or(0);
    let mut content = vec![0; wanted];
    let mut filled = 0;
    while filled < wanted {
        match rustix::io::pread(&file, &mut content[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    content.truncate(filled);
    Ok((content, filled < wanted))
}

/// Writes a file: appended to, or replaced as a whole so that a reader never sees half of it.
pub(super) fn write(
    roots: &Roots,
    path: &str,
    mode: u32,
    append: bool,
    content: &[u8],
) -> Result<(), Refusal> {
    let (parent, name) = roots.place(path)?.open_parent()?;
    let mode = Mode::from_raw_mode(mode & 0o777);
    if append {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK;
        let file = super::path::open_beneath(parent.as_fd(), &name, flags, mode)?;
        require_regular(&file)?;
        return write_all(&file, content);
    }
    let temporary = format!(".cellblock-{}", rustix::thread::gettid().as_raw_nonzero());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    let file = openat(&parent, &temporary, flags, mode)?;
    let written = write_all(&file, content)
        .and_then(|()| renameat(&parent, &temporary, &parent, &name).map_err(Refusal::from));
    if written.is_err() {
        let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    }
    written
}

/// Removes a file, or an empty directory.
pub(super) fn remove(roots: &Roots, path: &str) -> Result<(), Refusal> {
    let (parent, name) = roots.place(path)?.open_parent()?;
    match unlinkat(&parent, &name, AtFlags::empty()) {
        Err(Errno::ISDIR) => Ok(unlinkat(&parent, &name, AtFlags::REMOVEDIR)?),
        other => Ok(other?),
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Refusal> {
    while !content.is_empty() {
        match rustix::io::write(file, content) {
            Ok(written) => content = &content[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn require_regular(file: &OwnedFd) -> Result<(), Refusal> {
    let kind = FileType::from_raw_mode(fstat(file)?.st_mode);
    if kind == FileType::RegularFile {
        return Ok(());
    }
    Err(Refusal::new(
        "not_regular",
        format!("is {}, not a regular file", describe(kind)),
    ))
}

/// A word for a kind of file.
pub(super) fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    }
}

/// Whether a name can stand in a message: UTF-8 and not ours.
pub(super) fn servable(name: &Path) -> Option<&str> {
    name.to_str().filter(|name| !name.starts_with(".cellblock-"))
}
