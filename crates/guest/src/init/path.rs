//! Opening a caller's paths without following links that user code may have created.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use cellblock_jail::scratch::RoomDir;
use cellblock_jail::walled;
use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;

mod walk;

/// The reason why a path is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        let code = match errno {
            Errno::NOENT => "not_found",
            Errno::LOOP | Errno::XDEV => "symlink",
            Errno::NOSPC | Errno::DQUOT => "disk_full",
            Errno::FBIG => "too_large",
            Errno::ACCESS | Errno::PERM | Errno::ROFS => "denied",
            Errno::NOTDIR => "not_a_directory",
            Errno::ISDIR => "is_a_directory",
            Errno::NAMETOOLONG => "name_too_long",
            Errno::AGAIN => "busy",
            _ => "io",
        };
        Self::new(code, std::io::Error::from(errno).to_string())
    }
}

/// Directories that are served, opened before any user code runs.
#[derive(Debug)]
pub(super) struct Roots {
    workspace: OwnedFd,
    tmp: OwnedFd,
    /// `/tmp/data` by its path: read-only, with its mounts.
    shown: OwnedFd,
    /// The same directory, writable and without its mounts.
    data: OwnedFd,
}

/// A path below one of the roots.
#[derive(Debug)]
pub(super) struct RootPath<'a> {
    pub(super) root: BorrowedFd<'a>,
    pub(super) relative: PathBuf,
}

/// Directory in which code finds skills.
const SKILLS: &str = "/skills";

const NO_ESCAPE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

impl Roots {
    /// Opens the roots at their usual paths, or in the directory of a room that could not mount its
    /// own.
    pub(super) fn open(data: OwnedFd, dir: Option<&RoomDir>) -> rustix::io::Result<Self> {
        let at = |usual: &str, moved: fn(&RoomDir) -> PathBuf| dir.map_or_else(|| usual.into(), moved);
        let open = |path: PathBuf| {
            rustix::fs::open(
                path,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
        };
        Ok(Self {
            workspace: open(at("/workspace", RoomDir::workspace))?,
            tmp: open(at("/tmp", RoomDir::tmp))?,
            shown: open(at("/tmp/data", RoomDir::data))?,
            data,
        })
    }

    /// Returns roots that a test has opened.
    #[cfg(test)]
    pub(super) fn of(workspace: OwnedFd, tmp: OwnedFd, data: OwnedFd) -> Self {
        let shown = data.try_clone().expect("a descriptor can be duplicated");
        Self {
            workspace,
            tmp,
            shown,
            data,
        }
    }

    /// Finds the root of an absolute path for reading. `..` is rejected rather than resolved.
    pub(super) fn place(&self, path: &str) -> Result<RootPath<'_>, Refusal> {
        self.find(path, &self.shown)
    }

    /// Finds the root of an absolute path for writing.
    pub(super) fn place_to_change(&self, path: &str) -> Result<RootPath<'_>, Refusal> {
        if Path::new(path).starts_with(SKILLS) {
            return Err(Refusal::new("denied", "skills are read-only"));
        }
        self.find(path, &self.data)
    }

    fn find<'a>(&'a self, path: &str, data: &'a OwnedFd) -> Result<RootPath<'a>, Refusal> {
        let wrong = || {
            Refusal::new(
                "path",
                "path must be absolute, below /workspace or /tmp, and without `..`",
            )
        };
        let path = Path::new(path);
        let rest = path.strip_prefix("/").map_err(|_| wrong())?;
        if rest
            .components()
            .any(|part| !matches!(part, Component::Normal(_)))
        {
            return Err(wrong());
        }
        for (prefix, root, folder) in [
            // Its link leads there, and links are not followed.
            ("skills", data, ".skills"),
            ("tmp/data", data, "."),
            ("tmp", &self.tmp, "."),
            ("workspace", &self.workspace, "."),
        ] {
            if let Ok(relative) = rest.strip_prefix(prefix) {
                let relative = match (folder, relative.as_os_str().is_empty()) {
                    (folder, true) => PathBuf::from(folder),
                    (".", false) => relative.to_owned(),
                    (folder, false) => Path::new(folder).join(relative),
                };
                return Ok(RootPath {
                    root: root.as_fd(),
                    relative,
                });
            }
        }
        Err(wrong())
    }
}

impl RootPath<'_> {
    /// Opens the path.
    pub(super) fn open(&self, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        open_beneath(self.root, &self.relative, flags, mode)
    }

    /// Opens the parent directory, creating missing directories, and returns it with the last name.
    pub(super) fn open_parent(&self) -> Result<(OwnedFd, PathBuf), Refusal> {
        let name = self
            .relative
            .file_name()
            .ok_or_else(|| Refusal::new("path", "path names a root"))?;
        let parent = self.relative.parent().unwrap_or(Path::new(""));
        let mut dir = open_beneath(self.root, Path::new("."), DIRECTORY, Mode::empty())?;
        for part in parent.components() {
            let part = Path::new(part.as_os_str());
            match mkdirat(&dir, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            dir = open_beneath(dir.as_fd(), part, DIRECTORY, Mode::empty())?;
        }
        Ok((dir, PathBuf::from(name)))
    }
}

/// Maximum number of attempts to open a file while the kernel returns `EAGAIN`.
const OPEN_TRIES: u32 = 128;

/// Flags for opening a directory that is walked.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a path below a directory, never through a link and never outside.
pub(super) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    if walled::is_declared() {
        walk::open_beneath(dir, path, flags | OFlags::CLOEXEC, mode)
    } else {
        resolve(dir, path, flags, mode)
    }
}

/// Does so with `openat2`.
fn resolve(dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    for _ in 1..OPEN_TRIES {
        match openat2(dir, path, flags | OFlags::CLOEXEC, mode, NO_ESCAPE) {
            // The kernel returns `EAGAIN` when a rename happened meanwhile (openat2(2)), and also
            // as long as another process has a lease on the file (fcntl(2)).
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    openat2(dir, path, flags | OFlags::CLOEXEC, mode, NO_ESCAPE)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    type OpenFunction = fn(BorrowedFd<'_>, &Path, OFlags, Mode) -> rustix::io::Result<OwnedFd>;

    /// Both ways of opening a path.
    const WAYS: [OpenFunction; 2] = [resolve, walk::open_beneath];

    /// `openat2` rejects a mode that has no effect.
    fn mode_of(flags: OFlags) -> Mode {
        let mode = if flags.contains(OFlags::CREATE) { 0o600 } else { 0 };
        Mode::from_raw_mode(mode)
    }

    #[test]
    fn paths_are_opened_beneath_the_root_and_never_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        for (target, link) in [
            ("../secret", "out"),
            ("/etc/passwd", "absolute"),
            ("a", "inner"),
            ("a/b/file", "file"),
            ("loop", "loop"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let dir = rustix::fs::open(&root, DIRECTORY, Mode::empty()).unwrap();
        let read = OFlags::RDONLY | OFlags::NONBLOCK;
        for way in WAYS {
            let open = |path: &str, flags| way(dir.as_fd(), Path::new(path), flags, mode_of(flags));
            for (path, flags) in [
                (".", DIRECTORY),
                ("a", DIRECTORY),
                ("./a/./b", DIRECTORY),
                ("a/b/file", read),
                ("a/b/file", OFlags::PATH),
            ] {
                assert!(open(path, flags).is_ok(), "{path} {flags:?}");
            }
            for (path, flags, expected) in [
                ("out", read, Errno::LOOP),
                ("absolute", read, Errno::LOOP),
                ("file", read, Errno::LOOP),
                ("file", OFlags::PATH, Errno::LOOP),
                ("loop", read, Errno::LOOP),
                ("inner", DIRECTORY, Errno::LOOP),
                ("inner/b/file", read, Errno::LOOP),
                ("a/b/file/below", read, Errno::NOTDIR),
                ("a/b/file", DIRECTORY, Errno::NOTDIR),
                ("a/missing", read, Errno::NOENT),
                ("missing/file", read, Errno::NOENT),
                ("../secret", read, Errno::XDEV),
                ("/etc/passwd", read, Errno::XDEV),
                ("out", OFlags::WRONLY | OFlags::CREATE, Errno::LOOP),
                (
                    "a/b/file",
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
                    Errno::EXIST,
                ),
            ] {
                assert_eq!(open(path, flags).unwrap_err(), expected, "{path} {flags:?}");
            }
            open("a/new", OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).unwrap();
            std::fs::remove_file(root.join("a/new")).unwrap();
        }
        assert_eq!(std::fs::read(folder.path().join("secret")).unwrap(), b"x");
    }

    #[test]
    fn skills_are_found_by_their_usual_path_and_can_only_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.join(".skills/one")).unwrap();
            std::fs::write(path.join(".skills/one/SKILL.md"), name).unwrap();
            rustix::fs::open(&path, DIRECTORY, Mode::empty()).unwrap()
        };
        let roots = Roots::of(open("workspace"), open("tmp"), open("data"));
        let place = roots.place("/skills/one/SKILL.md").unwrap();
        let file = place.open(OFlags::RDONLY, Mode::empty()).unwrap();
        assert_eq!(
            std::io::read_to_string(std::fs::File::from(file)).unwrap(),
            "data"
        );
        assert!(
            roots
                .place("/skills")
                .unwrap()
                .open(DIRECTORY, Mode::empty())
                .is_ok()
        );
        for path in ["/skills/one/SKILL.md", "//skills/./x", "/skills"] {
            assert_eq!(roots.place_to_change(path).unwrap_err().code, "denied", "{path}");
        }
        assert_eq!(roots.place("/skills/../x").unwrap_err().code, "path");
        assert_eq!(roots.place("/skillset").unwrap_err().code, "path");
    }

    #[test]
    fn a_file_with_a_lease_is_rejected_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("leased"), "x").unwrap();
        let file = std::fs::File::open(folder.path().join("leased")).unwrap();
        // SAFETY: neither call touches memory. Ignoring SIGIO, which would end this test's process,
        // affects nothing else.
        let leased = unsafe {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        assert_eq!(leased, 0, "{}", std::io::Error::last_os_error());
        let dir = rustix::fs::open(folder.path(), DIRECTORY, Mode::empty()).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = open_beneath(dir.as_fd(), Path::new("leased"), flags, Mode::empty());
        assert_eq!(opened.unwrap_err(), Errno::AGAIN);
        assert_eq!(Refusal::from(Errno::AGAIN).code, "busy");
    }
}
