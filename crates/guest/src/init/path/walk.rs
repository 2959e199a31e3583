//! Opening a path beneath a directory where the kernel has no `openat2`: inside gVisor.
//!
//! Each component is opened by its own name without following links, so that a rename by user code
//! can only lead to another directory that user code could have named.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// Opens a path below a directory, never through a link and never outside; with the errors of `openat2`.
pub(super) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let Some(last) = names.pop() else {
        return openat(dir, ".", flags, mode);
    };
    let mut at: Option<OwnedFd> = None;
    for name in names {
        let here = at.as_ref().map_or(dir, AsFd::as_fd);
        let next = openat(here, name, step, Mode::empty()).map_err(|error| {
            // A link is no directory either, but callers report it as what it is.
            if error == Errno::NOTDIR && is_link(here, Path::new(name)) {
                Errno::LOOP
            } else {
                error
            }
        })?;
        at = Some(next);
    }
    let here = at.as_ref().map_or(dir, AsFd::as_fd);
    let opened = openat(here, last, flags | OFlags::NOFOLLOW, mode);
    match opened {
        Err(Errno::NOTDIR) if is_link(here, Path::new(last)) => Err(Errno::LOOP),
        // `O_PATH` with `O_NOFOLLOW` opens the link itself.
        Ok(fd) if flags.contains(OFlags::PATH) && !flags.contains(OFlags::NOFOLLOW) => {
            let found = fstat(&fd)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
                return Err(Errno::LOOP);
            }
            Ok(fd)
        }
        other => other,
    }
}

fn is_link(dir: BorrowedFd<'_>, name: &Path) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}
