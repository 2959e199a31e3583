//! A file of a table, on disk or in an object store, and its readers.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::object::Object;

/// A file of a table. Clones share what was read of it.
#[derive(Clone, Debug)]
pub(super) struct TableFile(Arc<TableFileInner>);

#[derive(Debug)]
struct TableFileInner {
    stored: FileSource,
    footer: OnceLock<ArrowReaderMetadata>,
}

#[derive(Debug)]
enum FileSource {
    Disk(File, u64),
    Object(Object),
}

impl TableFile {
    pub(super) fn on_disk(file: File) -> std::io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::new(FileSource::Disk(file, length)))
    }

    pub(super) fn in_store(object: Object) -> Self {
        Self::new(FileSource::Object(object))
    }

    fn new(stored: FileSource) -> Self {
        let footer = OnceLock::new();
        Self(Arc::new(TableFileInner { stored, footer }))
    }

    /// Returns a reader from a position.
    pub(super) fn reader(&self, at: u64) -> FileReader {
        FileReader {
            file: self.clone(),
            at,
        }
    }

    /// Returns the footer of a Parquet file, which is read once.
    pub(super) fn footer(&self) -> Result<&ArrowReaderMetadata, String> {
        if let Some(footer) = self.0.footer.get() {
            return Ok(footer);
        }
        if let FileSource::Object(object) = &self.0.stored {
            object.read_end().map_err(|error| error.to_string())?;
        }
        let footer = ArrowReaderMetadata::load(self, ArrowReaderOptions::default());
        let footer = footer.map_err(|error| error.to_string())?;
        Ok(self.0.footer.get_or_init(|| footer))
    }

    /// Announces ranges that will be read, in groups that are used together.
    pub(super) fn want(&self, groups: impl FnOnce() -> Vec<Vec<Range<u64>>>) {
        if let FileSource::Object(object) = &self.0.stored {
            object.want(groups());
        }
    }
}

/// A reader of a file, with a position of its own.
#[derive(Debug)]
pub(super) struct FileReader {
    file: TableFile,
    at: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = match &self.file.0.stored {
            FileSource::Disk(file, _) => file.read_at(buffer, self.at)?,
            FileSource::Object(object) => {
                let bytes = object.bytes(self.at)?;
                let read = bytes.len().min(buffer.len());
                buffer[..read].copy_from_slice(&bytes[..read]);
                read
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for TableFile {
    fn len(&self) -> u64 {
        match &self.0.stored {
            FileSource::Disk(_, length) => *length,
            FileSource::Object(object) => object.len(),
        }
    }
}

impl ChunkReader for TableFile {
    type T = BufReader<FileReader>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(self.reader(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if let FileSource::Object(object) = &self.0.stored {
            let bytes = object.bytes(start)?;
            if bytes.len() >= length {
                return Ok(bytes.slice(..length));
            }
        }
        let left = usize::try_from(self.len().saturating_sub(start)).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length.min(left));
        self.reader(start).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            let text = format!("{length} bytes expected at {start}, only {} exist", bytes.len());
            return Err(ParquetError::EOF(text));
        }
        Ok(bytes.into())
    }
}
