//! The root of an image while it is unpacked. Its links are those of an image that may be hostile,
//! so every path is resolved by Linux beneath the root, as in a container: `/` and `..` of a link
//! lead to the root at most.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Flags with which links lead nowhere else than in a container with this root.
const INSIDE: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
/// Maximum number of folders, one in the other: removing them takes a descriptor for each.
const MAX_DEPTH: usize = 256;
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory that is treated as the root of its files.
#[derive(Debug)]
pub(super) struct RootDirectory {
    path: PathBuf,
    root: OwnedFd,
    /// The folder that was used last: most members follow others of their folder.
    last: Option<(PathBuf, OwnedFd)>,
}

impl RootDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self {
            path: path.to_owned(),
            root,
            last: None,
        })
    }

    /// Returns the root's path on the host.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder, and makes it if it is missing.
    fn folder(&mut self, path: &Path) -> io::Result<&OwnedFd> {
        if self.last.as_ref().is_none_or(|(known, _)| known != path) {
            let folder = self.reach(path)?;
            self.last = Some((path.to_owned(), folder));
        }
        match &self.last {
            Some((_, folder)) => Ok(folder),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn reach(&self, path: &Path) -> io::Result<OwnedFd> {
        let whole = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        match rustix::fs::openat2(&self.root, whole, FOLDER, Mode::empty(), INSIDE) {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?),
        }
        let (above, name) = split(path)?;
        let folder = self.reach(above)?;
        match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
            // A link that leads nowhere.
            Err(Errno::EXIST) => return Err(Errno::NOENT.into()),
            made => made?,
        }
        rustix::fs::chmodat(&folder, name, Mode::from_raw_mode(0o755), AtFlags::empty())?;
        let made = rustix::fs::openat2(
            &folder,
            name,
            FOLDER | OFlags::NOFOLLOW,
            Mode::empty(),
            ResolveFlags::BENEATH,
        )?;
        // A short name can lead through a link to a deep folder.
        if self.without_links(&made)?.components().count() > MAX_DEPTH {
            let reason = format!("it is more than {MAX_DEPTH} folders deep");
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, reason));
        }
        Ok(made)
    }

    /// Makes a folder where there is none; what has its name otherwise is replaced.
    pub(super) fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || self.kind(path)? == Some(FileType::Directory) {
            return Ok(());
        }
        self.remove(path)?;
        self.folder(path).map(drop)
    }

    /// Creates a file, in the place of what has its name.
    pub(super) fn create(&mut self, path: &Path, executable: bool) -> io::Result<File> {
        self.remove(path)?;
        let (above, name) = split(path)?;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.folder(above)?, name, flags, mode)?;
        // The user's mask may be stricter, and sandboxes have other user ids.
        rustix::fs::fchmod(&file, mode)?;
        Ok(File::from(file))
    }

    /// Makes a symbolic link, in the place of what has its name.
    pub(super) fn link(&mut self, path: &Path, target: &OsStr) -> io::Result<()> {
        self.remove(path)?;
        let (above, name) = split(path)?;
        rustix::fs::symlinkat(target, self.folder(above)?, name)?;
        self.last = None;
        Ok(())
    }

    /// Gives a file a second name. Fails with `NotFound` if there is no such file.
    pub(super) fn hard_link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        if self.kind(target)? != Some(FileType::RegularFile) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if path == target {
            return Ok(());
        }
        let (above, name) = split(target)?;
        let from = self.reach(above)?;
        let old = name.to_owned();
        self.remove(path)?;
        let (above, name) = split(path)?;
        Ok(rustix::fs::linkat(
            &from,
            &old,
            self.folder(above)?,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Removes what has this name, with everything in it.
    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let Some(kind) = self.kind(path)? else {
            return Ok(());
        };
        let (above, name) = split(path)?;
        if kind != FileType::Directory {
            rustix::fs::unlinkat(self.folder(above)?, name, AtFlags::empty())?;
            if kind == FileType::Symlink {
                self.last = None;
            }
            return Ok(());
        }
        let folder = self.reach(above)?;
        self.last = None;
        // Follows no link below it.
        fs::remove_dir_all(Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
    }

    /// Returns what has this name, without following it.
    pub(super) fn kind(&self, path: &Path) -> io::Result<Option<FileType>> {
        let (above, name) = split(path)?;
        let whole = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        let found = rustix::fs::openat2(&self.root, whole, FOLDER, Mode::empty(), INSIDE)
            .and_then(|folder| rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the names in a folder; none if it is missing or no folder.
    pub(super) fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let whole = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let folder = match rustix::fs::openat2(&self.root, whole, flags, Mode::empty(), INSIDE) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Follows links, as a program inside would, and returns the path without them of a file or folder.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let found = rustix::fs::openat2(
            &self.root,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            INSIDE,
        )?;
        self.without_links(&found)
    }

    /// Returns the path below the root of an open file or folder.
    fn without_links(&self, found: &OwnedFd) -> io::Result<PathBuf> {
        let here = |file: &OwnedFd| fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let (found, root) = (here(found)?, here(&self.root)?);
        found
            .strip_prefix(root)
            .map(Path::to_owned)
            .map_err(|_| io::ErrorKind::NotFound.into())
    }

    /// Opens a regular file for reading, following links as a program inside would.
    pub(super) fn read(&self, path: &Path) -> io::Result<File> {
        // Without `NONBLOCK`, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat2(
            &self.root,
            path,
            flags,
            Mode::empty(),
            INSIDE,
        )?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

/// Splits a path into its folder and its name.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => Ok((above, name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Reads the name of a member, which must be relative and lead to something below the root.
///
/// The result is empty for the root itself.
pub(super) fn relative(name: &[u8]) -> Result<PathBuf, &'static str> {
    if name.len() > super::MAX_NAME {
        return Err("is longer than a path can be");
    }
    if name.contains(&0) {
        return Err("contains a NUL character");
    }
    let mut path = PathBuf::new();
    for part in Path::new(OsStr::from_bytes(name)).components() {
        match part {
            Component::Normal(part) if part.len() <= 255 => path.push(part),
            Component::Normal(_) => return Err("has a part with more than 255 bytes"),
            Component::CurDir => {}
            Component::ParentDir => return Err("leads out of the image with `..`"),
            Component::RootDir | Component::Prefix(_) => return Err("is absolute"),
        }
    }
    Ok(path)
}
