//! Finding new and changed files in a directory tree of the room.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cellblock_protocol::{FileEntry, FromGuest, SkippedFile};
use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat, statat};

use super::files::{describe, servable};
use super::path::{DIRECTORY, Refusal, Roots, open_beneath};

/// Maximum depth; deeper directories are reported but not entered.
const MAX_DEPTH: usize = 32;
/// Maximum number of entries per walk, so that a tree of millions cannot block the guest for long.
const MAX_ENTRIES: u64 = 100_000;
/// Maximum number of skipped entries that are named.
const MAX_SKIPPED: usize = 100;

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    files: Vec<FileEntry>,
    skipped: Vec<SkippedFile>,
    /// Number of matching files, including those beyond the limit.
    total: u64,
    entries: u64,
}

/// Returns the clock with which file systems stamp inodes, in nanoseconds.
pub(super) fn stamp() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

/// Lists regular files below `root` whose inode changed at or after `since`, at most `limit` of
/// them, without following links.
///
/// The clock is coarse: a file that changed in the same tick as an earlier listing may appear
/// twice, but none is missed.
pub(super) fn list(roots: &Roots, root: &str, since: u64, limit: u32) -> Result<WalkResult, Refusal> {
    let mut listing = WalkResult::default();
    let dir = roots.place(root)?.open(DIRECTORY, Mode::empty())?;
    listing.walk(dir, root.trim_end_matches('/'), since, limit, 0)?;
    Ok(listing)
}

impl WalkResult {
    pub(super) fn into_message(self, request: u64, stamp: u64) -> FromGuest {
        FromGuest::Files {
            request,
            stamp,
            files: self.files,
            skipped: self.skipped,
            total: self.total,
        }
    }

    fn walk(&mut self, dir: OwnedFd, at: &str, since: u64, limit: u32, depth: usize) -> Result<(), Refusal> {
        let handle = rustix::io::fcntl_dupfd_cloexec(&dir, 3)?;
        for entry in Dir::new(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.skip(
                    at.to_owned(),
                    format!("more than {MAX_ENTRIES} entries; the rest was not read"),
                );
                return Ok(());
            }
            let name = Path::new(OsStr::from_bytes(name));
            let Some(text) = servable(name) else {
                if name.to_str().is_none() {
                    self.skip(
                        format!("{at}/{}", name.display()),
                        "its name is not UTF-8".to_owned(),
                    );
                }
                continue;
            };
            let path = format!("{at}/{text}");
            let Ok(stat) = statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => self.take(path, &stat, since, limit),
                // Inputs belong to the host.
                FileType::Directory if path == "/tmp/data" => {}
                FileType::Directory if depth < MAX_DEPTH => {
                    if let Ok(dir) = open_beneath(handle.as_fd(), name, DIRECTORY, Mode::empty()) {
                        self.walk(dir, &path, since, limit, depth + 1)?;
                    }
                }
                FileType::Directory => self.skip(path, format!("deeper than {MAX_DEPTH} directories")),
                kind if changed(&stat) >= since => self.skip(path, format!("is {}", describe(kind))),
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, path: String, stat: &Stat, since: u64, limit: u32) {
        if changed(stat) < since {
            return;
        }
        self.total += 1;
        if self.files.len() < limit as usize {
            self.files.push(FileEntry {
                path,
                size: stat.st_size.cast_unsigned(),
                mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec.cast_signed()).cast_signed(),
                mode: stat.st_mode & 0o777,
            });
        }
    }

    fn skip(&mut self, path: String, reason: String) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(SkippedFile { path, reason });
        }
    }
}

fn changed(stat: &Stat) -> u64 {
    nanoseconds(stat.st_ctime, stat.st_ctime_nsec.cast_signed())
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
        .max(0)
        .cast_unsigned()
}
