//! Differences between a tree and its snapshot.
//!
//! Processes may run meanwhile, so nothing is changed here, links are not followed, and what
//! vanishes on the way is left out.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use cellblock_protocol::{ChangeKind, FileDifference};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};

use super::arena::{Arena, Content};
use super::tree::{DIRECTORY, FileState, Kind, MAX_DEPTH, MAX_ENTRIES, TreeEntry, mode, names};

/// Maximum length of all reported paths together, which have to fit in the header of a message.
const MAX_PATH_BYTES: usize = 256 * 1024;

/// The differences, in no order.
#[derive(Debug, Default)]
pub(in crate::init) struct Differences {
    pub(in crate::init) found: Vec<FileDifference>,
    /// Number of differences, including those that are not in the list.
    pub(in crate::init) total: u64,
    bytes: usize,
}

impl Differences {
    fn add(&mut self, most: u32, path: String, change: ChangeKind) {
        self.total += 1;
        self.bytes = self.bytes.saturating_add(path.len());
        if self.found.len() < most as usize && self.bytes <= MAX_PATH_BYTES {
            self.found.push(FileDifference { path, change });
        }
    }
}

/// Compares a tree with its snapshot.
pub(super) struct TreeComparison<'a> {
    arena: &'a Arena,
    /// Path of the root.
    root: &'a str,
    excluded: &'a [&'a str],
    before: HashMap<&'a Path, &'a TreeEntry>,
    seen: HashSet<&'a Path>,
    most: u32,
    found: &'a mut Differences,
    /// Number of entries that may still be looked at.
    left: usize,
}

impl<'a> TreeComparison<'a> {
    pub(super) fn new(
        arena: &'a Arena,
        (root, excluded): (&'a str, &'a [&'a str]),
        entries: &'a [TreeEntry],
        most: u32,
        found: &'a mut Differences,
    ) -> Self {
        Self {
            arena,
            root,
            excluded,
            before: entries
                .iter()
                .map(|entry| (entry.path.as_path(), entry))
                .collect(),
            seen: HashSet::new(),
            most,
            found,
            left: 2 * MAX_ENTRIES,
        }
    }

    /// Reports everything that was created, changed or removed below the root.
    pub(super) fn compare(mut self, root: &OwnedFd) {
        self.walk(root, Path::new(""), 0);
        let mut removed: Vec<_> = self
            .before
            .iter()
            .filter(|(path, _)| !path.as_os_str().is_empty() && !self.seen.contains(*path))
            .map(|(path, entry)| {
                (
                    self.shown(path, matches!(entry.kind, Kind::Directory)),
                    ChangeKind::Removed,
                )
            })
            .collect();
        removed.sort();
        for (path, change) in removed {
            self.found.add(self.most, path, change);
        }
    }

    fn walk(&mut self, directory: &OwnedFd, at: &Path, depth: usize) {
        let (Ok(about), Ok(mut names)) = (fstat(directory), names(directory.as_fd())) else {
            return;
        };
        names.sort();
        for name in names {
            let path = at.join(&name);
            if self.excluded.iter().any(|it| Path::new(it) == path) {
                continue;
            }
            let Ok(found) = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if found.st_dev != about.st_dev {
                continue;
            }
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            let change = match self.before.get_key_value(path.as_path()) {
                None => Some(ChangeKind::Created),
                Some((known, entry)) => {
                    let entry = *entry;
                    self.seen.insert(known);
                    self.differs(directory.as_fd(), &path, &found, entry)
                        .then_some(ChangeKind::Changed)
                }
            };
            if let Some(change) = change {
                let shown = self.shown(&path, is_directory);
                self.found.add(self.most, shown, change);
            }
            if is_directory
                && depth < MAX_DEPTH
                && let Ok(below) = openat(directory, &name, DIRECTORY, Mode::empty())
            {
                self.walk(&below, &path, depth + 1);
            }
        }
    }

    fn differs(&self, directory: BorrowedFd<'_>, path: &Path, stat: &Stat, entry: &TreeEntry) -> bool {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let name = path.file_name().unwrap_or_default();
        let same = match &self.first(entry).kind {
            Kind::Directory => kind == FileType::Directory,
            Kind::Link(target) => {
                kind == FileType::Symlink
                    && readlinkat(directory, name, Vec::new()).is_ok_and(|now| now.as_bytes() == target)
            }
            Kind::File { content, state, .. } => {
                let now = FileState::of(stat);
                let untouched = now.is_some() && now == *state;
                kind == FileType::RegularFile
                    && (untouched || self.has_content(directory, name, stat, content))
            }
            Kind::Same(_) => false,
        };
        // Links have no mode of their own.
        !same || (kind != FileType::Symlink && entry.mode != mode(stat))
    }

    /// Returns the entry whose content a hard link has.
    fn first<'b>(&'b self, entry: &'b TreeEntry) -> &'b TreeEntry {
        match &entry.kind {
            Kind::Same(first) => self.before.get(first.as_path()).copied().unwrap_or(entry),
            _ => entry,
        }
    }

    fn has_content(
        &self,
        directory: BorrowedFd<'_>,
        name: &std::ffi::OsStr,
        stat: &Stat,
        content: &Content,
    ) -> bool {
        if content.length() != stat.st_size.cast_unsigned() {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(directory, name, flags, Mode::empty()) else {
            return false;
        };
        fstat(&file).is_ok_and(|now| now.st_ino == stat.st_ino)
            && self.arena.equals(content, &file).unwrap_or(false)
    }

    fn shown(&self, path: &Path, is_directory: bool) -> String {
        let end = if is_directory { "/" } else { "" };
        format!("{}/{}{end}", self.root, path.display())
    }
}
