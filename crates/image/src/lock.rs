//! Advisory locks: one builder at a time, and no removal of directories in use.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::error::{IoResultExt, Result};

/// A held lock, released when its last clone is dropped and every program that has it as its stdin
/// has ended.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    held: Arc<LockState>,
}

#[derive(Debug)]
struct LockState {
    file: File,
    lent: AtomicBool,
}

impl Drop for LockState {
    fn drop(&mut self) {
        // A child that another thread has just forked holds a copy of the descriptor until it
        // executes its program: closing ours would keep the lock held for a moment. A lent lock
        // stays with its borrower.
        if !self.lent.load(Ordering::Relaxed) {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl Lock {
    fn held(file: File) -> Self {
        let lent = AtomicBool::new(false);
        Self {
            held: Arc::new(LockState { file, lent }),
        }
    }

    /// Takes the exclusive lock, calling `waiting` once if another process holds it.
    pub(crate) fn exclusive(path: &Path, waiting: impl FnOnce()) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .at("open", path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                waiting();
                retry_on_intr(|| flock(&file, FlockOperation::LockExclusive)).at("lock", path)?;
            }
            Err(error) => return Err(error).at("lock", path),
        }
        Ok(Self::held(file))
    }

    /// Returns an empty stdin that shares the lock: a program that outlives a killed builder makes
    /// the next one wait.
    pub(crate) fn stdin(&self) -> Result<Stdio> {
        let file = self.held.file.try_clone().at("share", Path::new("lock"))?;
        self.held.lent.store(true, Ordering::Relaxed);
        Ok(Stdio::from(file))
    }

    /// Takes the exclusive lock, or returns `None` if another process holds it.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path).at("open", path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self::held(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).at("lock", path),
        }
    }

    /// Takes a shared lock. The file may belong to another user: being able to read it is enough.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        let file = File::open(path).at("open", path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockShared)).at("lock", path)?;
        Ok(Self::held(file))
    }

    /// Returns whether the locked file or folder is the one at this path.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        let (own, there) = (self.held.file.metadata(), fs::metadata(path));
        own.is_ok_and(|own| there.is_ok_and(|there| (own.dev(), own.ino()) == (there.dev(), there.ino())))
    }

    /// Notes the time as that of the last change of the locked file or folder. A failure is of no
    /// consequence.
    pub(crate) fn touch(&self) {
        let _ = self.held.file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_lock_is_held_as_long_as_it_is_a_programs_stdin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::exclusive(&path, || panic!("nobody else has it")).unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(lock.stdin().unwrap())
            .spawn()
            .unwrap();
        drop(lock);
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        // Processes that other tests fork at this moment have a copy of the lent descriptor until
        // they execute their program.
        let deadline = Instant::now() + Duration::from_secs(30);
        while Lock::try_exclusive(&path).unwrap().is_none() {
            assert!(
                Instant::now() < deadline,
                "the lock outlives the program that had it"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_shared_lock_prevents_an_exclusive_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        drop(Lock::exclusive(&path, || ()).unwrap());
        let (one, other) = (Lock::shared(&path).unwrap(), Lock::shared(&path).unwrap());
        drop(one);
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop(other);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
    }
}
