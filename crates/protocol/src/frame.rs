//! Frames: two lengths, a JSON header, raw blobs.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{FrameError, text};

/// Maximum number of blobs in a frame.
pub const MAX_BLOBS: usize = 1024;

/// Maximum number of characters of an unknown type in an error.
const SHOWN_TYPE: usize = 64;
/// Maximum number of characters of a parse error in an error; it may quote the header.
const SHOWN_CAUSE: usize = 160;

/// A set of messages that travel in one direction.
pub trait MessageSet: Serialize + DeserializeOwned {
    /// Every valid value of `type`.
    const TYPES: &'static [&'static str];
}

/// Maximum sizes of frames that a receiver accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// Maximum size of a header in bytes.
    pub header_bytes: u32,
    /// Maximum number of bytes after a frame's first field.
    pub frame_bytes: u32,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            header_bytes: 4 << 20,
            frame_bytes: 1 << 30,
        }
    }
}

/// The first eight bytes of a frame, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    header: u32,
    blobs: u32,
}

impl Prefix {
    /// Size of a prefix in bytes.
    pub const LEN: usize = 8;

    /// Checks both lengths against each other and the limits.
    pub fn parse(bytes: [u8; Self::LEN], limits: &FrameLimits) -> Result<Self, FrameError> {
        let [t0, t1, t2, t3, h0, h1, h2, h3] = bytes;
        let total = u32::from_be_bytes([t0, t1, t2, t3]);
        let header = u32::from_be_bytes([h0, h1, h2, h3]);
        if total > limits.frame_bytes {
            return Err(FrameError::FrameTooLarge {
                limit: limits.frame_bytes.into(),
                actual: total.into(),
            });
        }
        if header > limits.header_bytes {
            return Err(FrameError::HeaderTooLarge {
                limit: limits.header_bytes.into(),
                actual: header.into(),
            });
        }
        let blobs = total.checked_sub(4).and_then(|rest| rest.checked_sub(header));
        let blobs = blobs.ok_or(FrameError::HeaderBeyondFrame { total, header })?;
        Ok(Self { header, blobs })
    }

    /// Returns the number of bytes of the header, which comes next.
    pub fn header_bytes(&self) -> usize {
        self.header as usize
    }

    /// Returns the number of bytes of all blobs, which follow the header.
    pub fn blob_bytes(&self) -> u64 {
        self.blobs.into()
    }

    /// Parses the header, whose `blobs` must add up to the bytes declared in the prefix.
    pub fn header<M: MessageSet>(&self, bytes: &[u8]) -> Result<Header<M>, FrameError> {
        if bytes.len() != self.header_bytes() {
            return Err(FrameError::HeaderLength {
                announced: self.header,
                actual: bytes.len(),
            });
        }
        let Outline { kind, blobs } =
            serde_json::from_slice(bytes).map_err(|source| FrameError::Header(tamed(source)))?;
        let Some(kind) = M::TYPES.iter().copied().find(|known| *known == kind) else {
            return Err(FrameError::UnknownType { found: shown(&kind) });
        };
        if blobs.len() > MAX_BLOBS {
            return Err(FrameError::TooManyBlobs {
                limit: MAX_BLOBS,
                actual: blobs.len(),
            });
        }
        let listed = blobs
            .iter()
            .fold(0_u64, |sum, length| sum.saturating_add(*length));
        if listed != self.blob_bytes() {
            return Err(FrameError::BlobLengths {
                listed,
                present: self.blob_bytes(),
            });
        }
        let message = serde_json::from_slice(bytes).map_err(|source| FrameError::Fields {
            kind,
            source: tamed(source),
        })?;
        Ok(Header { message, blobs })
    }
}

fn shown(kind: &str) -> String {
    let cut: String = kind.chars().take(SHOWN_TYPE).collect();
    let more = if cut.len() < kind.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// Cuts and escapes an error that repeats more of a header than logs and callers should contain.
fn tamed(error: serde_json::Error) -> serde_json::Error {
    let text = error.to_string();
    if text.chars().nth(SHOWN_CAUSE).is_none() && !text.chars().any(text::acts) {
        return error;
    }
    let mut cut: String = text
        .chars()
        .take(SHOWN_CAUSE)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CAUSE).is_some() {
        cut.push('…');
    }
    serde::de::Error::custom(cut)
}

/// The parts of a header that the frame needs; the message is parsed in a second step, so that it
/// need not know about blobs.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    blobs: Vec<u64>,
}

/// A message and the lengths of the blobs that follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct Header<M> {
    /// The message.
    pub message: M,
    /// Number of bytes of each blob, in order.
    pub blobs: Vec<u64>,
}

/// A message with its blobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame<M, B = crate::Blob> {
    /// The message.
    pub message: M,
    /// Its blobs, in order.
    pub blobs: Vec<B>,
}

/// Encodes both lengths and the header. The caller writes the blobs after them, without copying.
pub fn encode<M: MessageSet>(
    message: &M,
    blobs: &[&[u8]],
    limits: &FrameLimits,
) -> Result<Vec<u8>, FrameError> {
    let lengths: Vec<_> = blobs.iter().map(|blob| blob.len() as u64).collect();
    encode_before(message, &lengths, limits)
}

/// Encodes both lengths and the header of a frame with blobs of these lengths in bytes.
pub fn encode_before<M: MessageSet>(
    message: &M,
    blobs: &[u64],
    limits: &FrameLimits,
) -> Result<Vec<u8>, FrameError> {
    if blobs.len() > MAX_BLOBS {
        return Err(FrameError::TooManyBlobs {
            limit: MAX_BLOBS,
            actual: blobs.len(),
        });
    }
    let mut bytes = Vec::with_capacity(256);
    bytes.extend([0; Prefix::LEN]);
    serde_json::to_writer(&mut bytes, message).map_err(FrameError::Encode)?;
    let mut blob_bytes = 0_u64;
    if !blobs.is_empty() {
        // A message is an object with at least a `type`, so that a field can follow its last one.
        bytes.pop();
        bytes.extend(br#","blobs":["#);
        for (at, length) in blobs.iter().enumerate() {
            if at > 0 {
                bytes.push(b',');
            }
            bytes.extend(length.to_string().into_bytes());
            blob_bytes = blob_bytes.saturating_add(*length);
        }
        bytes.extend(b"]}");
    }
    let header = (bytes.len() - Prefix::LEN) as u64;
    let total = (header + 4).saturating_add(blob_bytes);
    let over = FrameError::HeaderTooLarge {
        limit: limits.header_bytes.into(),
        actual: header,
    };
    let header = u32::try_from(header)
        .ok()
        .filter(|header| *header <= limits.header_bytes)
        .ok_or(over)?;
    let over = FrameError::FrameTooLarge {
        limit: limits.frame_bytes.into(),
        actual: total,
    };
    let total = u32::try_from(total)
        .ok()
        .filter(|total| *total <= limits.frame_bytes)
        .ok_or(over)?;
    bytes[..4].copy_from_slice(&total.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.to_be_bytes());
    Ok(bytes)
}

/// Extracts frames from a byte stream that arrives in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: FrameLimits,
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// Creates a decoder with an empty buffer.
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            taken: 0,
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns whether the buffer contains part of a frame.
    pub fn is_partial(&self) -> bool {
        self.taken < self.buffer.len()
    }

    /// Returns the next frame, or nothing if more bytes are needed. An error is repeated by each
    /// further call.
    pub fn frame<M: MessageSet>(&mut self) -> Result<Option<Frame<M, Vec<u8>>>, FrameError> {
        let pending = &self.buffer[self.taken..];
        let Some((prefix, rest)) = pending.split_first_chunk::<{ Prefix::LEN }>() else {
            return Ok(None);
        };
        let prefix = Prefix::parse(*prefix, &self.limits)?;
        let Some((header, rest)) = rest.split_at_checked(prefix.header_bytes()) else {
            return Ok(None);
        };
        let blob_bytes = prefix.blobs as usize;
        let Some(mut rest) = rest.get(..blob_bytes) else {
            return Ok(None);
        };
        let Header { message, blobs } = prefix.header(header)?;
        let mut taken = Vec::with_capacity(blobs.len());
        for length in blobs {
            // The header was checked: its blobs add up to `rest`, so each is at most that long.
            let (blob, after) = rest.split_at(usize::try_from(length).unwrap_or(rest.len()).min(rest.len()));
            taken.push(blob.to_vec());
            rest = after;
        }
        self.taken += Prefix::LEN + prefix.header_bytes() + blob_bytes;
        Ok(Some(Frame {
            message,
            blobs: taken,
        }))
    }
}
