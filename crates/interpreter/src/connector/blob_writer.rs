//! Bytes that may be many on their way into a blob.

use std::io::{self, BufWriter, Write};

use cellblock_protocol::Blob;
use tempfile::{SpooledData, SpooledTempFile, spooled_tempfile};

/// Number of bytes that are kept in memory; more are kept in a file without a name.
const MEMORY_BYTES: usize = 1 << 20;

/// Writes a blob: into memory, and into a file without a name once it is large.
#[derive(Debug)]
pub struct BlobWriter(BufWriter<SpooledTempFile>);

impl Default for BlobWriter {
    fn default() -> Self {
        Self(BufWriter::new(spooled_tempfile(MEMORY_BYTES)))
    }
}

impl BlobWriter {
    /// Writes bytes that are in memory already.
    pub fn written(bytes: Vec<u8>) -> io::Result<Blob> {
        if bytes.len() <= MEMORY_BYTES {
            return Ok(bytes.into());
        }
        let mut writer = Self::default();
        writer.write_all(&bytes)?;
        drop(bytes);
        writer.finish()
    }

    /// Returns what was written.
    pub fn finish(self) -> io::Result<Blob> {
        let spool = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(match spool.into_inner() {
            SpooledData::InMemory(bytes) => Blob::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => {
                let length = file.metadata()?.len();
                Blob::File(file, length)
            }
        })
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_large_blob_is_a_file_with_the_same_bytes() {
        for (pieces, is_large) in [(0, false), (64, false), (65, true)] {
            let mut writer = BlobWriter::default();
            let piece: Vec<u8> = (0..=255).cycle().take(16 << 10).collect();
            for _ in 0..pieces {
                writer.write_all(&piece).unwrap();
            }
            let blob = writer.finish().unwrap();
            assert_eq!(matches!(blob, Blob::File(..)), is_large, "{pieces}");
            let mut read = Vec::new();
            blob.reader().read_to_end(&mut read).unwrap();
            assert_eq!(read, piece.repeat(pieces));
        }
    }
}
