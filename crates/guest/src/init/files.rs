//! Files of a room, served to the host.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use cellblock_protocol::FileStamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::path::{Refusal, Roots};

/// Maximum number of bytes in one response.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// Conditions for replacing a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// An existing regular file keeps its mode; anything else is rejected.
    pub(super) keep: bool,
    /// The file must still be this one.
    pub(super) expect: Option<FileStamp>,
}

/// Reads a part of a regular file; the flag says whether the file ends there.
pub(super) fn read(
    roots: &Roots,
    path: &str,
    offset: u64,
    length: u64,
) -> Result<(Vec<u8>, bool, FileStamp), Refusal> {
    // Without NONBLOCK the open of a FIFO would wait for a writer.
    let file = roots
        .place(path)?
        .open(OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    let stamp = stamp(&require_regular(&file)?);
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
    Ok((content, filled < wanted, stamp))
}

/// Appends to a file.
pub(super) fn append(roots: &Roots, path: &str, mode: u32, content: &[u8]) -> Result<(), Refusal> {
    let (parent, name) = roots.place_to_change(path)?.open_parent()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK;
    let file = super::path::open_beneath(parent.as_fd(), &name, flags, Mode::from_raw_mode(mode & 0o777))?;
    require_regular(&file)?;
    write_all(&file, content)
}

/// Replaces a whole file, so that readers never see half of it. A link that is put in its place
/// meanwhile is replaced, not followed.
pub(super) fn replace(
    roots: &Roots,
    path: &str,
    mode: u32,
    terms: Terms,
    content: &[u8],
) -> Result<(), Refusal> {
    let (parent, name) = roots.place_to_change(path)?.open_parent()?;
    let mode = terms.mode(&parent, &name)?.unwrap_or(mode & 0o777);
    let temporary = format!(".cellblock-{}", rustix::thread::gettid().as_raw_nonzero());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    let file = openat(&parent, &temporary, flags, Mode::from_raw_mode(mode & 0o777))?;
    let written = write_all(&file, content)
        .and_then(|()| {
            // Restores bits that the umask removed.
            Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?)
        })
        .and_then(|()| terms.mode(&parent, &name).map(drop))
        .and_then(|()| renameat(&parent, &temporary, &parent, &name).map_err(Refusal::from));
    if written.is_err() {
        let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    }
    written
}

impl Terms {
    /// Returns the mode that the file keeps, if the terms require it; rejects a file that the terms
    /// do not permit.
    fn mode(self, parent: &OwnedFd, name: &Path) -> Result<Option<u32>, Refusal> {
        if !self.keep && self.expect.is_none() {
            return Ok(None);
        }
        let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) if self.expect.is_none() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        match kind {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Errno::LOOP.into()),
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(not_regular(kind)),
        }
        if self.expect.is_some_and(|expected| expected != stamp(&found)) {
            return Err(Refusal::new("changed", "the file was changed meanwhile"));
        }
        Ok(Some(found.st_mode & 0o7777))
    }
}

fn stamp(stat: &Stat) -> FileStamp {
    let time = |seconds: i64, nanoseconds: u64| {
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds.cast_signed())
    };
    FileStamp {
        inode: stat.st_ino,
        size: stat.st_size.cast_unsigned(),
        mtime_ns: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// Removes a file, or an empty directory.
pub(super) fn remove(roots: &Roots, path: &str) -> Result<(), Refusal> {
    let (parent, name) = roots.place_to_change(path)?.open_parent()?;
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

fn require_regular(file: &OwnedFd) -> Result<Stat, Refusal> {
    let stat = fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        kind => Err(not_regular(kind)),
    }
}

fn not_regular(kind: FileType) -> Refusal {
    Refusal::new(
        "not_regular",
        format!("is {}, not a regular file", describe(kind)),
    )
}

/// Describes a kind of file in words.
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

/// Returns a name that messages can contain: it is UTF-8 and not one of ours.
pub(super) fn servable(name: &Path) -> Option<&str> {
    name.to_str().filter(|name| !name.starts_with(".cellblock-"))
}
