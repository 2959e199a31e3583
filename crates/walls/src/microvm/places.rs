//! Directories of one host process below `<home>/microvm`, with a lock that shows that it is alive.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cellblock_jail::cgroup::Trees;
use rustix::fs::{FlockOperation, flock};

const LOCK: &str = "lock";

/// The directories of this process. Removed when dropped.
///
/// ```text
/// <home>/microvm/cellblock-<pid>-…-<n>.lock   held by the process
/// <home>/microvm/cellblock-<pid>-…-<n>/m<n>   sockets of one machine
/// ```
#[derive(Debug)]
pub(super) struct Places {
    path: PathBuf,
    next: AtomicU64,
    _lock: fs::File,
}

/// The directory of one machine, which its owner removes.
#[derive(Clone, Debug)]
pub(super) struct MachinePlace {
    pub(super) path: PathBuf,
    /// Name of the machine.
    pub(super) id: String,
}

/// Number of backends of this process, for their directories.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Places {
    /// Creates the directories and removes those of processes that no longer run.
    pub(super) fn create(home: &Path) -> io::Result<Self> {
        let parent = home.join("microvm");
        private(&parent)?;
        sweep(&parent);
        let name = format!("{}-{}", Trees::own_name(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(&name);
        let lock = fs::File::create(parent.join(format!("{name}.{LOCK}")))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        private(&path)?;
        Ok(Self {
            path,
            next: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// Creates the directory of the next machine.
    pub(super) fn machine(&self) -> io::Result<MachinePlace> {
        let id = format!("m{}", self.next.fetch_add(1, Ordering::Relaxed));
        let path = self.path.join(&id);
        private(&path)?;
        Ok(MachinePlace { path, id })
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // The owners of machines that are just ending remove theirs, too.
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_file(self.path.with_extension(LOCK));
    }
}

impl MachinePlace {
    /// Returns the socket of QEMU's control protocol.
    pub(super) fn control(&self) -> PathBuf {
        self.path.join("qmp")
    }

    /// Returns the socket of the stream to the machine.
    pub(super) fn stream(&self) -> PathBuf {
        self.path.join("port")
    }
}

/// Removes the directories whose lock is free. Their machines ended with their owners.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let beside = entry.path();
        if beside.extension().is_none_or(|it| it != LOCK) {
            continue;
        }
        let Ok(file) = fs::File::open(&beside) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(beside.with_extension(""));
            let _ = fs::remove_file(&beside);
        }
    }
}

fn private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_stays() {
        let home = tempfile::tempdir().unwrap();
        let left = home.path().join("microvm/cellblock-4194304-1-0");
        fs::create_dir_all(left.join("m0")).unwrap();
        fs::write(left.with_extension(LOCK), "").unwrap();
        let one = Places::create(home.path()).unwrap();
        assert!(!left.exists() && !left.with_extension(LOCK).exists());
        let other = Places::create(home.path()).unwrap();
        let machine = other.machine().unwrap();
        let path = one.path.clone();
        drop(one);
        assert!(!path.exists() && machine.path.is_dir());
    }
}
