//! Uploads: files that clients send. They are counted before their first byte and as they come, and
//! stand in one folder until a session or the store has them.
//!
//! ```text
//! Meter::upload ──UploadAllowance──> UploadRoom::begin ──Upload──> receive ──> SpooledUpload
//!  bytes of a day                     bytes at a time, duration                removed when it is dropped
//! ```

mod error;
mod room;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug, Display};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use tempfile::TempPath;
use tokio::time::{Instant, timeout_at};

use super::MeterDenial;
pub use error::UploadError;
use room::SpoolPermit;
pub use room::{UploadLimits, UploadRoom};

/// Bytes of a form or of a compressed body that may not belong to its files.
const WRAPPING: u64 = 64 << 10;

/// Room that an owner has for the bytes of one request. What is taken and not kept is given back
/// when this is dropped.
pub trait UploadAllowance: Debug + Send + Sync {
    /// Takes room for more bytes.
    ///
    /// # Errors
    ///
    /// Returns the quota that has no room for them.
    fn take(&mut self, bytes: u64) -> Result<(), MeterDenial>;

    /// Counts for good what was taken.
    fn keep(&mut self);
}

/// Any amount.
impl UploadAllowance for () {
    fn take(&mut self, _: u64) -> Result<(), MeterDenial> {
        Ok(())
    }

    fn keep(&mut self) {}
}

/// Size that a request announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredSize {
    /// Nothing is announced, as in a chunked body.
    Unknown,
    /// Size of the one file that is the body.
    File(u64),
    /// Size of a body that has files in it, or one that is compressed.
    Wrapped(u64),
}

impl DeclaredSize {
    /// Reads the size of a body.
    pub fn of(headers: &HeaderMap) -> Self {
        let value = |name| {
            headers
                .get(name)
                .and_then(|value: &http::HeaderValue| value.to_str().ok())
        };
        let Some(bytes) = value(CONTENT_LENGTH).and_then(|length| length.parse().ok()) else {
            return Self::Unknown;
        };
        let is_form = value(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("multipart/"));
        let is_encoded = value(CONTENT_ENCODING).is_some_and(|encoding| !matches!(encoding, "" | "identity"));
        if is_form || is_encoded {
            Self::Wrapped(bytes)
        } else {
            Self::File(bytes)
        }
    }

    /// Returns the bytes that the files have at least.
    pub const fn at_least(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::File(bytes) => bytes,
            Self::Wrapped(bytes) => bytes.saturating_sub(WRAPPING),
        }
    }
}

/// Maximum size of a file, and the setting that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxUpload {
    /// Maximum size in bytes.
    pub bytes: u64,
    /// Path of the setting, such as `sessions.max_upload`.
    pub setting: &'static str,
}

/// The upload of one request, which has one or more files.
#[derive(Debug)]
pub struct Upload {
    room: UploadRoom,
    owner: String,
    allowance: Box<dyn UploadAllowance>,
    max: MaxUpload,
    deadline: Instant,
}

/// A file that was received, or the files of a form one after the other. It counts among the bytes at
/// a time until this is dropped.
#[derive(Debug)]
pub struct SpooledUpload {
    /// Its content. That of one received file is at its start.
    pub content: File,
    /// Its size.
    pub bytes: u64,
    permit: SpoolPermit,
}

impl Upload {
    /// Waits for a part of the body for as long as the upload may take.
    ///
    /// # Errors
    ///
    /// Fails when the time of the upload is over.
    pub async fn within<T>(&self, part: impl Future<Output = T>) -> Result<T, UploadError> {
        let over = |_| UploadError::TimedOut(self.room.limits().timeout);
        timeout_at(self.deadline, part).await.map_err(over)
    }

    /// Receives a file without a name.
    ///
    /// # Errors
    ///
    /// Fails when the file exceeds a limit or a quota, when it is broken, or when it cannot be
    /// written. Nothing of it is left then.
    pub async fn receive<E: Display>(
        &mut self,
        pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<SpooledUpload, UploadError> {
        let spool = self.spool()?;
        self.fill(spool, pieces).await
    }

    /// Opens an empty file without a name, for all files of a form: one for each would let a request
    /// with many small files use up the process's open files.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be made.
    pub fn spool(&self) -> Result<SpooledUpload, UploadError> {
        Ok(self.empty(self.room.unnamed()?))
    }

    /// Receives a file at a path with this end, such as `.csv`. Dropping the path removes it.
    ///
    /// # Errors
    ///
    /// Like [`receive`](Self::receive).
    pub async fn receive_named<E: Display>(
        &mut self,
        suffix: &str,
        pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<(SpooledUpload, TempPath), UploadError> {
        let (content, path) = self.room.named(suffix)?.into_parts();
        let spool = self.empty(content);
        Ok((self.fill(spool, pieces).await?, path))
    }

    fn empty(&self, content: File) -> SpooledUpload {
        SpooledUpload {
            content,
            bytes: 0,
            permit: self.room.permit(&self.owner),
        }
    }

    async fn fill<E: Display>(
        &mut self,
        mut spool: SpooledUpload,
        pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<SpooledUpload, UploadError> {
        self.append(&mut spool, pieces).await?;
        spool.content.rewind().map_err(UploadError::File)?;
        Ok(spool)
    }

    /// Receives a file at the end of a spool, and returns the place of its bytes there.
    ///
    /// # Errors
    ///
    /// Like [`receive`](Self::receive), except that the spool may have a part of the file.
    pub async fn append<E: Display>(
        &mut self,
        spool: &mut SpooledUpload,
        mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<Range<u64>, UploadError> {
        let start = spool.bytes;
        let mut bytes = 0_u64;
        while let Some(piece) = self.within(pieces.next()).await? {
            let piece = piece.map_err(|error| UploadError::Broken(error.to_string()))?;
            let more = piece.len() as u64;
            bytes += more;
            if bytes > self.max.bytes {
                return Err(UploadError::TooLarge {
                    declared: None,
                    max: self.max,
                });
            }
            self.allowance.take(more)?;
            spool.permit.grow(more)?;
            // A piece is small; a file without a name is mostly memory of the page cache.
            spool.content.write_all(&piece).map_err(UploadError::File)?;
            spool.bytes += more;
        }
        self.allowance.keep();
        Ok(start..spool.bytes)
    }
}

impl fmt::Display for MaxUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` allows {}", self.setting, self.bytes)
    }
}
