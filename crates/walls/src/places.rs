//! Directories of one host process below `<home>/<backend>`, with a lock that shows that it is alive.

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
/// <home>/<backend>/cellblock-<pid>-…-<n>.lock   held by the process
/// <home>/<backend>/cellblock-<pid>-…-<n>/       what all its machines share, and one directory
///                                               per machine (m…) and saved state (s…)
/// ```
#[derive(Debug)]
pub(crate) struct MachinePlaces {
    path: PathBuf,
    next: AtomicU64,
    _lock: fs::File,
}

/// The directory of one machine, which its owner removes.
#[derive(Clone, Debug)]
pub(crate) struct MachinePlace {
    pub(crate) path: PathBuf,
    /// Its name.
    pub(crate) id: String,
}

/// Number of backends of this process, for their directories.
static MADE: AtomicU64 = AtomicU64::new(0);

impl MachinePlaces {
    /// Creates the directories and removes those of processes that no longer run.
    pub(crate) fn create(home: &Path, backend: &str) -> io::Result<Self> {
        let parent = home.join(backend);
        private(&parent)?;
        sweep(&parent);
        let name = format!("{}-{}", Trees::own_name(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(&name);
        let lock = fs::File::create(path.with_extension(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        private(&path)?;
        Ok(Self {
            path,
            next: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// Returns the directory of what all machines share.
    pub(crate) fn shared(&self) -> PathBuf {
        self.path.join("shared")
    }

    /// Creates a directory for the state of a machine.
    pub(crate) fn saved(&self) -> io::Result<PathBuf> {
        let path = self
            .path
            .join(format!("s{}", self.next.fetch_add(1, Ordering::Relaxed)));
        private(&path)?;
        Ok(path)
    }

    /// Creates the directory of the next machine.
    pub(crate) fn machine(&self) -> io::Result<MachinePlace> {
        let id = format!("m{}", self.next.fetch_add(1, Ordering::Relaxed));
        let path = self.path.join(&id);
        private(&path)?;
        Ok(MachinePlace { path, id })
    }
}

impl Drop for MachinePlaces {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.shared());
        // The last owner of a machine that is still ending does this instead, or the next start.
        if fs::remove_dir(&self.path).is_ok() {
            let _ = fs::remove_file(self.path.with_extension(LOCK));
        }
    }
}

impl MachinePlace {
    /// Creates a directory in it.
    pub(crate) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        private(&path)?;
        Ok(path)
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
        let left = home.path().join("gvisor/cellblock-4194304-1-0");
        fs::create_dir_all(left.join("m0/state")).unwrap();
        fs::write(left.with_extension(LOCK), "").unwrap();
        let one = MachinePlaces::create(home.path(), "gvisor").unwrap();
        assert!(!left.exists() && !left.with_extension(LOCK).exists());
        let other = MachinePlaces::create(home.path(), "gvisor").unwrap();
        let machine = other.machine().unwrap();
        let path = one.path.clone();
        fs::create_dir(one.shared()).unwrap();
        drop(one);
        assert!(!path.exists() && machine.path.is_dir());
        // A machine that is still ending keeps its directory and the lock.
        let path = other.path.clone();
        drop(other);
        assert!(machine.path.is_dir() && path.with_extension(LOCK).exists());
    }
}
