//! Recorded bytes as a reader, for writing them into a sandbox.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use cellblock_artifact::ArtifactId;
use sha2::{Digest, Sha256};

/// Bytes that are read in order, from memory and from files, with blocking reads.
///
/// A file is opened when its turn comes. The last bytes of a recorded result are returned only if
/// all its bytes are the recorded ones; otherwise reading fails, and the bytes that were already
/// written must not be used.
#[derive(Debug)]
pub struct Content {
    parts: VecDeque<Part>,
    length: u64,
}

#[derive(Debug)]
pub(super) enum Part {
    /// Text between results.
    Text(Cursor<Vec<u8>>),
    /// A result in a folder of this machine.
    Folder {
        path: PathBuf,
        id: ArtifactId,
        length: u64,
    },
    /// The same result after its file was opened.
    Opened(ContentReader),
    /// A result that was copied from a remote store, and checked on the way.
    Copy { file: Arc<File>, at: u64, left: u64 },
}

#[derive(Debug)]
pub(super) struct ContentReader {
    file: File,
    id: ArtifactId,
    hash: Sha256,
    left: u64,
}

impl Content {
    pub(super) fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        let parts: VecDeque<_> = parts.into_iter().collect();
        let length = parts.iter().map(Part::len).sum();
        Self { parts, length }
    }

    /// Returns the number of unread bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(part) = self.parts.front_mut() {
            let read = part.read(buffer)?;
            if read > 0 {
                self.length -= read as u64;
                return Ok(read);
            }
            self.parts.pop_front();
        }
        Ok(0)
    }
}

impl Part {
    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(Cursor::new(text.into()))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.get_ref().len() as u64,
            Self::Folder { length, .. } => *length,
            Self::Opened(opened) => opened.left,
            Self::Copy { left, .. } => *left,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Text(text) => text.read(buffer),
            Self::Folder { path, id, length } => {
                let file = File::open(path).map_err(|error| {
                    // The host's path must not be shown to readers of the message.
                    io::Error::new(error.kind(), format!("could not open recorded result {id}"))
                })?;
                let mut opened = ContentReader {
                    file,
                    id: *id,
                    hash: Sha256::new(),
                    left: *length,
                };
                let read = opened.read(buffer)?;
                *self = Self::Opened(opened);
                Ok(read)
            }
            Self::Opened(opened) => opened.read(buffer),
            Self::Copy { file, at, left } => {
                let most = bounded(buffer, *left);
                let read = file.read_at(most, *at)?;
                if read == 0 && *left > 0 {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "a temporary copy is too short",
                    ));
                }
                *at += read as u64;
                *left -= read as u64;
                Ok(read)
            }
        }
    }
}

impl ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let most = bounded(buffer, self.left);
        let read = self.file.read(most)?;
        self.hash.update(&most[..read]);
        self.left -= read as u64;
        let whole = self.left == 0 && ArtifactId::from_sha256(self.hash.clone().finalize().into()) == self.id;
        if read == 0 || (self.left == 0 && !whole) {
            let damaged = format!("recorded result {} is damaged: record it again", self.id);
            return Err(io::Error::new(io::ErrorKind::InvalidData, damaged));
        }
        Ok(read)
    }
}

fn bounded(buffer: &mut [u8], left: u64) -> &mut [u8] {
    let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
    &mut buffer[..most]
}
