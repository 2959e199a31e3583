//! Directories of rooms that cannot mount their own tree: creating them, passing them to the room's
//! user, and removing them with any content.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::cgroup::Trees;
use crate::error::{Error, Result, SyscallResult};
use crate::mounts::write_file;
use crate::walled;

/// Suffix of the lock file beside a launcher's directory.
const LOCK: &str = ".lock";

/// The directory of one launcher, which contains those of its rooms. Removed when dropped.
///
/// A lock beside it shows other launchers that it is in use. Unlike a pid, a lock works across
/// containers that share a disk.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: fs::File,
}

/// The directory of one room.
#[derive(Clone, Debug)]
pub struct RoomDir {
    path: PathBuf,
    /// Whether the room has the machine's `/workspace` and `/tmp` to itself.
    usual: bool,
}

impl Scratch {
    /// Creates the launcher's directory below `parent` and removes those of launchers that no
    /// longer run.
    pub fn create(parent: &Path) -> Result<Self> {
        make(parent, 0o755)?;
        check_owner(parent)?;
        sweep(parent);
        let path = parent.join(Trees::own_name());
        let beside = lock_of(&path);
        let lock = fs::File::create(&beside).during_on("create", &beside)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).during_on("lock", &beside)?;
        // Other users must be able to enter it, but not to list it.
        make(&path, 0o711)?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes files that every room may read.
    pub fn write(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
        for (path, content) in files {
            let path = self.path.join(path);
            if let Some(parent) = path.parent() {
                make(parent, 0o755)?;
            }
            write_file(&path, content)?;
        }
        Ok(())
    }

    /// Creates a room's directory, owned by `owner` if that is another user.
    pub fn room(&self, name: &str, owner: Option<u32>) -> Result<RoomDir> {
        let room = RoomDir {
            path: self.path.join(name),
            usual: walled::is_declared(),
        };
        for path in [
            room.path.clone(),
            room.workspace(),
            room.tmp(),
            room.tmp().join("output"),
            room.data(),
        ] {
            // Everything of a machine can enter its `/tmp`.
            make(
                &path,
                if room.usual && path == room.tmp() {
                    0o1777
                } else {
                    0o700
                },
            )?;
            // The room's own directory has the writable side of `/tmp/data`.
            if owner.is_some() && !(room.usual && path == room.path) {
                chown(&path, owner, owner).during_on("hand over", &path)?;
            }
        }
        Ok(room)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
        let _ = fs::remove_file(lock_of(&self.path));
    }
}

impl RoomDir {
    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the room has the machine's `/workspace` and `/tmp` to itself, as file systems.
    pub fn is_usual(&self) -> bool {
        self.usual
    }

    /// Returns the directory that replaces `/workspace`.
    pub fn workspace(&self) -> PathBuf {
        self.place("/workspace", "workspace")
    }

    /// Returns the directory that replaces `/tmp`.
    pub fn tmp(&self) -> PathBuf {
        self.place("/tmp", "tmp")
    }

    /// Returns the directory that replaces `/tmp/data`.
    pub fn data(&self) -> PathBuf {
        self.place("/tmp/data", "data")
    }

    /// Returns the directory through which the guest writes to `/tmp/data`.
    pub fn data_source(&self) -> PathBuf {
        if self.usual {
            self.path.join("data")
        } else {
            self.data()
        }
    }

    fn place(&self, usual: &str, moved: &str) -> PathBuf {
        if self.usual {
            usual.into()
        } else {
            self.path.join(moved)
        }
    }

    /// Returns the real location of a path inside the room.
    pub fn real(&self, path: &str) -> PathBuf {
        for (usual, moved) in [
            ("/skills", self.data().join(".skills")),
            ("/tmp/data", self.data()),
            ("/tmp", self.tmp()),
            ("/workspace", self.workspace()),
        ] {
            if let Ok(below) = Path::new(path).strip_prefix(usual) {
                return moved.join(below);
            }
        }
        path.into()
    }

    /// Removes the directory with its content. The usual directories end with their machine, which
    /// serves no other sandbox.
    pub fn remove(&self) {
        remove(&self.path);
    }
}

/// Other users could replace files in a directory that they may write to or own.
fn check_owner(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).during_on("look at", path)?;
    let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Error::Child(format!(
        "`{}` must be a directory that the current user owns and that no other user can write to",
        path.display()
    )))
}

fn lock_of(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(LOCK);
    beside.into()
}

/// Removes directories whose lock is free.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let beside = entry.path();
        let name = beside.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(|name| name.strip_suffix(LOCK)) else {
            continue;
        };
        let free = fs::File::open(&beside)
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok());
        if free && name.starts_with("cellblock-") {
            remove(&parent.join(name));
            let _ = fs::remove_file(&beside);
        }
    }
}

fn make(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .during_on("create", path)?;
    // The umask may have removed permissions that others need.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    Ok(())
}

/// Removes a tree that user code has filled, after its last process has ended. Directories are
/// flattened rather than walked: at most two levels are open at a time, however deep the tree is,
/// and directories that their owner made inaccessible are removed too.
fn remove(root: &Path) {
    let mut number = 0_u64;
    open_up(root);
    while let Some(directory) = first_directory(root) {
        open_up(&directory);
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open_up(&path);
                number += 1;
                // A unique name: the sandbox is gone, and the root's other entries are numbered as
                // well.
                let _ = fs::rename(
                    &path,
                    root.join(format!(".removed-{}-{number}", std::process::id())),
                );
            } else {
                let _ = fs::remove_file(&path);
            }
        }
        if fs::remove_dir(&directory).is_err() && directory.exists() {
            // This needs more rights; a later start tries again.
            break;
        }
    }
    let _ = fs::remove_dir_all(root);
}

fn first_directory(root: &Path) -> Option<PathBuf> {
    fs::read_dir(root)
        .ok()?
        .flatten()
        .find(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

/// Restores the owner's access to a directory, without following links.
fn open_up(directory: &Path) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if rustix::fs::open(directory, flags, Mode::empty()).is_ok() {
        let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_inaccessible_trees_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&folder.path().join("rooms")).unwrap();
        let room = scratch.room("room-0", None).unwrap();
        let mut at = room.workspace();
        for level in 0..600 {
            at = at.join(format!("d{level}"));
            if fs::create_dir(&at).is_err() {
                break;
            }
            fs::write(at.join("file"), "x").unwrap();
        }
        let closed = room.tmp().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        std::os::unix::fs::symlink("/", room.tmp().join("link")).unwrap();
        room.remove();
        assert!(!room.path().exists());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        assert!(Path::new("/usr").exists());
    }

    #[test]
    fn the_next_launcher_removes_the_directories_of_a_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("cellblock-4194304-1");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        fs::write(folder.path().join("cellblock-4194304-1.lock"), "").unwrap();
        let strange = folder.path().join("notes");
        fs::create_dir(&strange).unwrap();
        let one = Scratch::create(folder.path()).unwrap();
        assert!(!left.exists());
        assert!(strange.exists());
        sweep(folder.path());
        assert!(one.path().exists(), "one that is in use stays");
    }
}
