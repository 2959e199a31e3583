//! Advisory locks: one builder at a time, and no removal of what is in use.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::error::{At, Result};

/// A held lock; dropping it, or the process' end, releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock alone, calling `waiting` once if somebody else holds it.
    pub(crate) fn exclusive(path: &Path, waiting: impl FnOnce()) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
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
        Ok(Self { _file: file })
    }

    /// Takes the lock alone, or gives `None` where somebody holds it.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path).at("open", path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).at("lock", path),
        }
    }

    /// Shares the lock with others that share it. The file may belong to someone else: reading it is enough.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        let file = File::open(path).at("open", path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockShared)).at("lock", path)?;
        Ok(Self { _file: file })
    }
}
