//! The messages of an Arrow IPC stream: metadata and a body each, with lengths that may be wrong.

use std::io::{BufReader, Read};

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{Message, MetadataVersion, root_as_message};
use cellblock_protocol::{Blob, BlobReader};

use crate::output::{DecodingLimits, OutputError};

const CONTINUATION: [u8; 4] = [0xff; 4];

/// Reads messages one by one.
pub(super) struct Messages<'a> {
    reader: BufReader<BlobReader<'a>>,
    left: u64,
    limits: &'a DecodingLimits,
}

/// One message whose lengths were checked.
pub(super) struct Raw {
    description: Vec<u8>,
    pub(super) body: Buffer,
}

impl Raw {
    /// Verifies the metadata, which is a flatbuffer.
    pub(super) fn message(&self) -> Result<Message<'_>, OutputError> {
        let message = root_as_message(&self.description)
            .map_err(|_| OutputError::table("the description of a message is not a valid flatbuffer"))?;
        if message.version() != MetadataVersion::V5 {
            return Err(OutputError::table("its stream is not of Arrow's version V5"));
        }
        Ok(message)
    }
}

impl<'a> Messages<'a> {
    pub(super) fn new(blob: &'a Blob, limits: &'a DecodingLimits) -> Self {
        Self {
            reader: BufReader::new(blob.reader()),
            left: blob.len(),
            limits,
        }
    }

    /// Reads the next message; nothing at the end of the stream, with or without an end marker.
    pub(super) fn next(&mut self) -> Result<Option<Raw>, OutputError> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut length = self.word()?;
        if length == CONTINUATION {
            length = self.word()?;
        }
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 {
            return Ok(None);
        }
        self.fits(
            "description of an Arrow message in bytes",
            length,
            self.limits.description_bytes,
        )?;
        let mut description = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut description)?;
        self.left -= length;
        let mut raw = Raw {
            description,
            body: Buffer::default(),
        };
        let body = u64::try_from(raw.message()?.bodyLength())
            .map_err(|_| OutputError::table("the length of a message's body is negative"))?;
        self.fits("Arrow batch in bytes", body, self.limits.batch_bytes)?;
        let bytes =
            usize::try_from(body).map_err(|_| OutputError::table("a message does not fit in memory"))?;
        let mut aligned = MutableBuffer::from_len_zeroed(bytes);
        self.reader.read_exact(&mut aligned)?;
        self.left -= body;
        raw.body = aligned.into();
        Ok(Some(raw))
    }

    fn word(&mut self) -> Result<[u8; 4], OutputError> {
        let mut word = [0; 4];
        self.left = self
            .left
            .checked_sub(4)
            .ok_or_else(|| OutputError::table("its stream ends in the middle"))?;
        self.reader.read_exact(&mut word)?;
        Ok(word)
    }

    fn fits(&self, what: &'static str, length: u64, limit: u64) -> Result<(), OutputError> {
        if length > limit {
            return Err(OutputError::Limit {
                what,
                limit,
                actual: length,
            });
        }
        if length > self.left {
            let left = self.left;
            return Err(OutputError::table(format!(
                "a message claims {length} bytes where {left} are left"
            )));
        }
        Ok(())
    }
}
