//! Brings a tree back to the state of a snapshot. Nothing else may run in the room meanwhile.
//!
//! A file that still exists keeps its inode, so that what the kept kernel has open stays the file
//! of that name.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, chmodat, fchmod, fstat, futimens, linkat,
    mkdirat, openat, readlinkat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::arena::{Arena, Content};
use super::tree::{FileState, Kind, TreeEntry, descend, mode, modified, names, open_root};

const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// Restores one tree.
pub(super) struct TreeRestorer<'a> {
    arena: &'a Arena,
    root: BorrowedFd<'a>,
    excluded: &'a [&'a str],
    /// The directory of the last entry: the next one is likely beside it.
    parent: RefCell<Option<(PathBuf, Rc<OwnedFd>)>>,
}

impl<'a> TreeRestorer<'a> {
    pub(super) fn new(arena: &'a Arena, root: BorrowedFd<'a>, excluded: &'a [&'a str]) -> Self {
        Self {
            arena,
            root,
            excluded,
            parent: RefCell::default(),
        }
    }

    /// Makes the tree equal to the entries, and notes the new states of the files that it has written.
    pub(super) fn restore(&self, entries: &mut [TreeEntry]) -> Result<(), (PathBuf, Errno)> {
        let root = open_root(self.root).map_err(|error| (PathBuf::new(), error))?;
        let device = fstat(&root).map_err(|error| (PathBuf::new(), error))?.st_dev;
        let mut wanted = RestorePlan::new(entries, device);
        let mut at = PathBuf::new();
        self.clear(&root, &mut at, &mut wanted)
            .map_err(|error| (at, error))?;
        let unchanged = wanted.unchanged;
        let changed = entries.iter_mut().zip(unchanged).filter(|(_, same)| !same);
        for (entry, _) in changed {
            self.make(entry).map_err(|error| (entry.path.clone(), error))?;
        }
        // Last and from the bottom: filling a directory changes its time, and may need more
        // permissions than it has.
        for entry in entries.iter().rev() {
            if matches!(entry.kind, Kind::Directory) {
                self.finish(entry).map_err(|error| (entry.path.clone(), error))?;
            }
        }
        Ok(())
    }

    /// Removes what the snapshot does not have, or has as something else. After an error, `at` is
    /// the path that it concerns.
    fn clear(
        &self,
        directory: &OwnedFd,
        at: &mut PathBuf,
        wanted: &mut RestorePlan<'_>,
    ) -> Result<(), Errno> {
        let is_root = at.as_os_str().is_empty();
        for name in names(directory.as_fd())? {
            if is_root && self.excluded.iter().any(|it| *it == name) {
                continue;
            }
            at.push(&name);
            self.clear_entry(directory, &name, at, wanted)?;
            at.pop();
        }
        Ok(())
    }

    fn clear_entry(
        &self,
        directory: &OwnedFd,
        name: &OsStr,
        path: &mut PathBuf,
        wanted: &mut RestorePlan<'_>,
    ) -> Result<(), Errno> {
        let stat = statat(directory, name, NOFOLLOW)?;
        if stat.st_dev != wanted.device {
            return Ok(());
        }
        let known = wanted.find(path);
        let directory_wanted = known.map(|(_, entry)| matches!(entry.kind, Kind::Directory));
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            if directory_wanted != Some(false) {
                unlinkat(directory, name, AtFlags::empty())?;
            }
            if let Some((place, entry)) = known {
                // One with other names may change with them.
                wanted.unchanged[place] = stat.st_nlink == 1 && is_unchanged(entry, &stat);
            }
            return Ok(());
        }
        permit(directory, name, &stat)?;
        let below = openat(directory, name, super::tree::DIRECTORY, Mode::empty())?;
        self.clear(&below, path, wanted)?;
        if directory_wanted != Some(true) {
            unlinkat(directory, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    fn make(&self, entry: &mut TreeEntry) -> Result<(), Errno> {
        let Some((parent, name)) = self.parent(&entry.path)? else {
            return Ok(());
        };
        let found = match statat(&parent, &name, NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        if found.as_ref().is_some_and(|there| is_unchanged(entry, there)) {
            return Ok(());
        }
        match &mut entry.kind {
            Kind::Directory if found.is_some() => Ok(()),
            Kind::Directory => mkdirat(&parent, &name, Mode::RWXU),
            Kind::Link(target) => {
                if let Some(found) = &found {
                    let same = FileType::from_raw_mode(found.st_mode) == FileType::Symlink
                        && readlinkat(&parent, &name, Vec::new())?.as_bytes() == *target;
                    if same {
                        return Ok(());
                    }
                    unlinkat(&parent, &name, AtFlags::empty())?;
                }
                symlinkat(OsStr::from_bytes(target), &parent, &name)?;
                utimensat(&parent, &name, &times(entry.modified), NOFOLLOW)
            }
            Kind::Same(first) => {
                let Some((other, first)) = self.parent(first)? else {
                    return Err(Errno::INVAL);
                };
                let wanted = statat(&other, &first, NOFOLLOW)?;
                if let Some(found) = &found {
                    if found.st_ino == wanted.st_ino {
                        return Ok(());
                    }
                    unlinkat(&parent, &name, AtFlags::empty())?;
                }
                linkat(&other, &first, &parent, &name, AtFlags::empty())
            }
            Kind::File {
                content,
                inode,
                shared,
                state,
            } => {
                let mut found = found;
                if let Some(there) = &found {
                    // Writing into a file with other names would change these, too.
                    let regular = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
                    let alone = there.st_nlink == 1 || (*shared && there.st_ino == *inode);
                    if !regular || !alone {
                        unlinkat(&parent, &name, AtFlags::empty())?;
                        found = None;
                    }
                }
                let file = self.fill(&parent, &name, found.as_ref(), content)?;
                fchmod(&file, entry.mode)?;
                futimens(&file, &times(entry.modified))?;
                let written = fstat(&file)?;
                (*inode, *state) = (written.st_ino, FileState::of(&written));
                Ok(())
            }
        }
    }

    fn fill(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        found: Option<&Stat>,
        content: &Content,
    ) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match found {
            Some(stat) => {
                permit(parent, name, stat)?;
                openat(parent, name, flags | OFlags::TRUNC, Mode::empty())?
            }
            None => openat(parent, name, flags | OFlags::CREATE | OFlags::EXCL, Mode::RWXU)?,
        };
        self.arena.put_out(content, &file)?;
        Ok(file)
    }

    fn finish(&self, entry: &TreeEntry) -> Result<(), Errno> {
        let Some((parent, name)) = self.parent(&entry.path)? else {
            // The root belongs to the room.
            return Ok(());
        };
        let found = statat(&parent, &name, NOFOLLOW)?;
        if mode(&found) != entry.mode {
            chmodat(&parent, &name, entry.mode, AtFlags::empty())?;
        }
        if modified(&found) != entry.modified {
            utimensat(&parent, &name, &times(entry.modified), NOFOLLOW)?;
        }
        Ok(())
    }

    /// Opens the directory of an entry; `None` for the root. Directories neither move nor go once
    /// their place was cleared.
    fn parent(&self, path: &Path) -> Result<Option<(Rc<OwnedFd>, OsString)>, Errno> {
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let at = path.parent().unwrap_or(Path::new(""));
        let mut last = self.parent.borrow_mut();
        let opened = match &*last {
            Some((path, opened)) if path == at => Rc::clone(opened),
            _ => {
                let opened = Rc::new(descend(self.root, at)?);
                *last = Some((at.to_owned(), Rc::clone(&opened)));
                opened
            }
        };
        Ok(Some((opened, name.to_owned())))
    }
}

/// Entries that a tree is to have, while the rest is removed.
#[derive(Debug)]
struct RestorePlan<'a> {
    entries: &'a [TreeEntry],
    /// Place of the entry that is likely the next: an unchanged directory lists its names in the
    /// same order again.
    next: usize,
    /// Places by their paths, once the order was another.
    places: OnceCell<HashMap<&'a Path, usize>>,
    /// For each place, whether the file there is as it has to be.
    unchanged: Vec<bool>,
    device: u64,
}

impl<'a> RestorePlan<'a> {
    fn new(entries: &'a [TreeEntry], device: u64) -> Self {
        Self {
            entries,
            // After the root.
            next: 1,
            places: OnceCell::new(),
            unchanged: vec![false; entries.len()],
            device,
        }
    }

    /// Returns the entry of a path, with its place.
    fn find(&mut self, path: &Path) -> Option<(usize, &'a TreeEntry)> {
        let is_next = |entry: &TreeEntry| entry.path.as_os_str() == path.as_os_str();
        let place = if self.entries.get(self.next).is_some_and(is_next) {
            self.next
        } else {
            let entries = self.entries.iter().enumerate();
            let places = self.places.get_or_init(|| {
                entries
                    .map(|(place, entry)| (entry.path.as_path(), place))
                    .collect()
            });
            *places.get(path)?
        };
        self.next = place + 1;
        Some((place, &self.entries[place]))
    }
}

/// Tells whether what is there is the file of an entry, untouched.
fn is_unchanged(entry: &TreeEntry, there: &Stat) -> bool {
    match &entry.kind {
        Kind::File { state, .. } => {
            state.is_some_and(|state| state.is_of(there)) && mode(there) == entry.mode
        }
        _ => false,
    }
}

/// Gives the owner, who is the guest's user, all permissions.
fn permit(directory: &OwnedFd, name: &OsStr, stat: &Stat) -> Result<(), Errno> {
    let own = mode(stat);
    if own.contains(Mode::RWXU)
        || (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && own.contains(Mode::WUSR))
    {
        return Ok(());
    }
    chmodat(directory, name, own | Mode::RWXU, AtFlags::empty())
}

fn times((seconds, nanoseconds): (i64, i64)) -> Timestamps {
    let modified = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: modified,
    }
}
