//! One directory tree of a snapshot.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, chmodat, fstat, openat, readlinkat, seek, statat,
};
use rustix::io::Errno;

use super::arena::{Arena, Content};
use crate::init::path::Refusal;

/// Maximum depth.
pub(super) const MAX_DEPTH: usize = 64;
/// Maximum number of entries of one tree.
pub(super) const MAX_ENTRIES: usize = 50_000;
/// Linux before 6.13 stamps changes with a clock that ticks every few milliseconds, so a file that
/// changed just now could change again without a new stamp.
const SETTLED_NS: i128 = 40_000_000;
/// Number of bytes of a directory that are listed at once.
const LISTED: usize = 16 << 10;
/// Flags for opening a directory that is walked.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An entry of a tree, below its directory in the order of the entries.
#[derive(Debug)]
pub(super) struct TreeEntry {
    /// Path relative to the root of the tree; empty for the root itself.
    pub(super) path: PathBuf,
    pub(super) mode: Mode,
    pub(super) modified: (i64, i64),
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Directory,
    Link(Vec<u8>),
    File {
        content: Content,
        inode: u64,
        /// Whether it had other names.
        shared: bool,
        /// State of the file that has this content; `None` if it is too young to tell.
        state: Option<FileState>,
    },
    /// The same file as an earlier entry.
    Same(PathBuf),
}

/// State of a file, which changes with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    /// Returns the state, if a later change of the file will change it.
    pub(super) fn of(stat: &Stat) -> Option<Self> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let since =
            |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let changed = changed(stat);
        let age = since(now.tv_sec, now.tv_nsec) - since(changed.0, changed.1);
        (age > SETTLED_NS).then(|| Self::now(stat))
    }

    /// Tells whether a file still has this state.
    pub(super) fn is_of(&self, stat: &Stat) -> bool {
        *self == Self::now(stat)
    }

    fn now(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: modified(stat),
            changed: changed(stat),
        }
    }
}

pub(super) fn modified(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime, stat.st_mtime_nsec.cast_signed())
}

fn changed(stat: &Stat) -> (i64, i64) {
    (stat.st_ctime, stat.st_ctime_nsec.cast_signed())
}

pub(super) fn mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o7777)
}

/// A file's entry in an earlier snapshot, by its path.
pub(super) type KnownContents<'a> = HashMap<&'a Path, (&'a Content, FileState)>;

/// Saves a tree.
pub(super) struct TreeWriter<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) known: KnownContents<'a>,
    /// Path of the root, for messages.
    pub(super) root: &'a str,
    /// Entries below the root that are left out.
    pub(super) excluded: &'a [&'a str],
    /// Number of bytes that may still be kept.
    pub(super) left: u64,
    pub(super) entries: Vec<TreeEntry>,
    /// First entry of each file that has several names.
    pub(super) linked: HashMap<u64, PathBuf>,
}

impl TreeWriter<'_> {
    /// Saves everything below a directory on its own file system.
    pub(super) fn walk(&mut self, directory: &OwnedFd, at: &Path, depth: usize) -> Result<(), Refusal> {
        let stat = fstat(directory)?;
        self.enter(at.to_owned(), &stat, Kind::Directory)?;
        if depth > MAX_DEPTH {
            let message = format!("`{}` is deeper than {MAX_DEPTH} directories", self.shown(at));
            return Err(Refusal::new("too_deep", message));
        }
        for name in names(directory.as_fd())? {
            let path = at.join(&name);
            if self.excluded.iter().any(|it| Path::new(it) == path) {
                continue;
            }
            let found =
                statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| self.named(&path, e))?;
            if found.st_dev != stat.st_dev {
                continue;
            }
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => {
                    let below = opened(directory.as_fd(), &name, DIRECTORY, &found)
                        .map_err(|e| self.named(&path, e))?;
                    self.walk(&below, &path, depth + 1)?;
                }
                FileType::RegularFile => self.save(directory.as_fd(), &name, path, &found)?,
                FileType::Symlink => {
                    let target =
                        readlinkat(directory, &name, Vec::new()).map_err(|e| self.named(&path, e))?;
                    self.enter(path, &found, Kind::Link(target.into_bytes()))?;
                }
                kind => {
                    let message = format!(
                        "`{}` is {}",
                        self.shown(&path),
                        crate::init::files::describe(kind)
                    );
                    return Err(Refusal::new("special_file", message));
                }
            }
        }
        Ok(())
    }

    fn save(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        path: PathBuf,
        stat: &Stat,
    ) -> Result<(), Refusal> {
        if stat.st_nlink > 1 {
            if let Some(first) = self.linked.get(&stat.st_ino) {
                let same = Kind::Same(first.clone());
                return self.enter(path, stat, same);
            }
            self.linked.insert(stat.st_ino, path.clone());
        }
        let state = FileState::of(stat);
        let known = self.known.get(path.as_path());
        let content = match (known, state) {
            (Some((content, before)), Some(state)) if *before == state => Rc::clone(content),
            _ => {
                let size = stat.st_size.cast_unsigned();
                self.left = self.left.checked_sub(size).ok_or_else(|| {
                    Refusal::new(
                        "too_large",
                        format!(
                            "changed files exceed the limit at `{}`, which has {size} bytes",
                            self.shown(&path)
                        ),
                    )
                })?;
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = opened(directory, name, flags, stat).map_err(|e| self.named(&path, e))?;
                self.arena
                    .take_in(&file, size)
                    .map_err(|e| self.named(&path, e))?
            }
        };
        let (inode, shared) = (stat.st_ino, stat.st_nlink > 1);
        let kind = Kind::File {
            content,
            inode,
            shared,
            state,
        };
        self.enter(path, stat, kind)
    }

    fn enter(&mut self, path: PathBuf, stat: &Stat, kind: Kind) -> Result<(), Refusal> {
        self.entries.push(TreeEntry {
            path,
            mode: mode(stat),
            modified: modified(stat),
            kind,
        });
        if self.entries.len() > MAX_ENTRIES {
            let message = format!(
                "`{}` has more than {MAX_ENTRIES} files and directories",
                self.root
            );
            return Err(Refusal::new("too_many", message));
        }
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        format!("{}/{}", self.root, path.display())
    }

    fn named(&self, path: &Path, errno: Errno) -> Refusal {
        let refusal = Refusal::from(errno);
        Refusal::new(
            refusal.code,
            format!("`{}`: {}", self.shown(path), refusal.message),
        )
    }
}

/// Returns the names in a directory.
pub(super) fn names(directory: BorrowedFd<'_>) -> Result<Vec<std::ffi::OsString>, Errno> {
    seek(directory, SeekFrom::Start(0))?;
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); LISTED];
    let mut listing = RawDir::new(directory, &mut buffer);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Opens an entry, also if its owner, who is the guest's user, has no permission. Its mode stays the same.
pub(super) fn opened(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    stat: &Stat,
) -> Result<OwnedFd, Errno> {
    match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let own = mode(stat);
            chmodat(directory, name, own | Mode::RWXU, AtFlags::empty())?;
            let opened = openat(directory, name, flags, Mode::empty());
            chmodat(directory, name, own, AtFlags::empty())?;
            opened
        }
        opened => opened,
    }
}

/// Opens the root of a tree.
pub(super) fn open_root(root: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    openat(root, ".", DIRECTORY, Mode::empty())
}

/// Opens a directory below another one, step by step.
pub(super) fn descend(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let mut at = open_root(root)?;
    for part in path.components() {
        at = openat(&at, part.as_os_str(), DIRECTORY, Mode::empty())?;
    }
    Ok(at)
}
