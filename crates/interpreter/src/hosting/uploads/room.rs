//! The room for uploads: a folder, and how many bytes of whom stand in it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use super::super::Owner;
use super::{DeclaredSize, MaxUpload, Upload, UploadAllowance, UploadError};
use crate::session::spool::claim;

/// Limits of all uploads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Maximum number of bytes that stand in the folder.
    pub max_bytes: u64,
    /// Maximum number of them that belong to one owner.
    pub max_bytes_per_owner: u64,
    /// Maximum duration of an upload.
    pub timeout: Duration,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            max_bytes: 8 << 30,
            max_bytes_per_owner: 2 << 30,
            timeout: Duration::from_mins(30),
        }
    }
}

/// The place in which uploads stand until they are complete and a session or the store has them.
/// Clones share it.
#[derive(Clone, Debug)]
pub struct UploadRoom(Arc<RoomState>);

#[derive(Debug)]
struct RoomState {
    limits: UploadLimits,
    folder: Option<PathBuf>,
    /// Keeps others from removing what is in the folder.
    claimed: OnceLock<File>,
    owners: Mutex<HashMap<String, u64>>,
}

/// Bytes of a file in the room, given back when this is dropped.
#[derive(Debug)]
pub(super) struct SpoolPermit {
    room: Arc<RoomState>,
    owner: String,
    bytes: u64,
}

impl UploadRoom {
    /// Opens the room. What a process that is gone has left in its folder is removed. Without a
    /// folder, the system's for temporary files is used.
    pub fn new(limits: UploadLimits, folder: Option<PathBuf>) -> Self {
        let room = Self(Arc::new(RoomState {
            limits,
            folder,
            claimed: OnceLock::new(),
            owners: Mutex::default(),
        }));
        if let Err(error) = room.folder() {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "open the folder of uploads"
            );
        }
        room
    }

    /// Begins an upload of an owner, whose allowance has room for the declared size.
    ///
    /// # Errors
    ///
    /// Fails if the declared size exceeds a limit.
    pub fn begin(
        &self,
        owner: &Owner,
        allowance: Box<dyn UploadAllowance>,
        declared: DeclaredSize,
        max: MaxUpload,
    ) -> Result<Upload, UploadError> {
        if let DeclaredSize::File(bytes) = declared {
            if bytes > max.bytes {
                let declared = Some(bytes);
                return Err(UploadError::TooLarge { declared, max });
            }
            self.0.check(owner.name(), bytes, &self.0.owners())?;
        }
        Ok(Upload {
            room: self.clone(),
            owner: owner.name().to_owned(),
            allowance,
            max,
            deadline: Instant::now() + self.0.limits.timeout,
        })
    }

    pub(super) fn limits(&self) -> &UploadLimits {
        &self.0.limits
    }

    pub(super) fn permit(&self, owner: &str) -> SpoolPermit {
        SpoolPermit {
            room: Arc::clone(&self.0),
            owner: owner.to_owned(),
            bytes: 0,
        }
    }

    pub(super) fn unnamed(&self) -> Result<File, UploadError> {
        let made = self.folder().and_then(|folder| match folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        });
        made.map_err(UploadError::File)
    }

    pub(super) fn named(&self, suffix: &str) -> Result<NamedTempFile, UploadError> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("cellblock-upload-").suffix(suffix);
        let made = self.folder().and_then(|folder| match folder {
            Some(folder) => builder.tempfile_in(folder),
            None => builder.tempfile(),
        });
        made.map_err(UploadError::File)
    }

    fn folder(&self) -> io::Result<Option<&Path>> {
        let Some(folder) = &self.0.folder else {
            return Ok(None);
        };
        if self.0.claimed.get().is_none() {
            let lock = claim(folder)?;
            // Another upload may have been faster, whose lock is as good.
            let _ = self.0.claimed.set(lock);
        }
        Ok(Some(folder))
    }
}

impl RoomState {
    fn owners(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.owners.lock()
    }

    fn check(&self, owner: &str, more: u64, owners: &HashMap<String, u64>) -> Result<(), UploadError> {
        let own = owners.get(owner).copied().unwrap_or_default();
        let all = owners.values().sum::<u64>();
        let (per_owner, limit) = (self.limits.max_bytes_per_owner, self.limits.max_bytes);
        for (is_owner, used, limit) in [(true, own, per_owner), (false, all, limit)] {
            if used.saturating_add(more) > limit {
                return Err(UploadError::Busy {
                    is_owner,
                    used,
                    limit,
                });
            }
        }
        Ok(())
    }
}

impl SpoolPermit {
    /// Takes room for more bytes.
    pub(super) fn grow(&mut self, more: u64) -> Result<(), UploadError> {
        let mut owners = self.room.owners();
        self.room.check(&self.owner, more, &owners)?;
        *owners.entry(self.owner.clone()).or_default() += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for SpoolPermit {
    fn drop(&mut self) {
        let mut owners = self.room.owners();
        if let Some(bytes) = owners.get_mut(&self.owner) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                owners.remove(&self.owner);
            }
        }
    }
}
