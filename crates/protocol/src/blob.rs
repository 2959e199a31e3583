//! Raw bytes next to a header, in memory or spilled to a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The bytes of one blob. Large ones are spilled by the reader of a channel to an unlinked file.
#[derive(Debug)]
pub enum Blob {
    /// The bytes themselves.
    Memory(Vec<u8>),
    /// A file that starts with the blob, and the blob's length.
    File(File, u64),
}

impl Blob {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a reader that starts at the first byte; readers are independent of each other.
    pub fn reader(&self) -> BlobReader<'_> {
        BlobReader {
            blob: self,
            position: 0,
        }
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes)
    }
}

/// Reads a [`Blob`] with its own position.
#[derive(Debug)]
pub struct BlobReader<'a> {
    blob: &'a Blob,
    position: u64,
}

impl Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.blob.len().saturating_sub(self.position);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match self.blob {
            Blob::Memory(bytes) => {
                // Empty when the position is at or beyond the end, as `wanted` is then 0.
                let start = usize::try_from(self.position)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                buffer[..wanted].copy_from_slice(&bytes[start..start + wanted]);
                wanted
            }
            Blob::File(file, _) => file.read_at(&mut buffer[..wanted], self.position)?,
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for BlobReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.blob.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = target.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "seek to before the first byte of a blob",
            )
        })?;
        Ok(self.position)
    }
}
