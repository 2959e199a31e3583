//! The host's end of a channel: frames in both directions, with large blobs spilled to files.

use std::io::{IoSlice, Write};

use bytes::{Buf, BufMut, BytesMut};
use cellblock_protocol::{Blob, Frame, FrameLimits, Header, MessageSet, Prefix, encode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::{DuringIo, Error, Result, SandboxErrorKind};
use crate::incoming::SocketReader;

/// Maximum size of a blob in memory; larger ones are spilled to an unlinked file, so that no guest
/// can make the host's memory grow.
const SPILL_OVER: u64 = 1024 * 1024;
/// Number of bytes requested per read while reads are filled.
const READ: usize = 64 * 1024;
/// Number of bytes requested otherwise: most frames are smaller, and each byte is cleared first.
const READ_FIRST: usize = 4 * 1024;

/// Reads frames. Dropping a pending [`next`](Self::next) loses nothing.
#[derive(Debug)]
pub struct FrameReader<R, M> {
    inner: R,
    who: &'static str,
    limits: FrameLimits,
    spill_over: u64,
    buffer: BytesMut,
    /// Number of bytes that the next read requests.
    read: usize,
    partial: Option<PartialFrame<M>>,
}

/// A frame whose header has been read.
#[derive(Debug)]
struct PartialFrame<M> {
    header: Header<M>,
    blobs: Vec<Blob>,
    current: Option<(Sink, u64)>,
    /// The reason why one of the blobs was not stored.
    lost: Option<std::io::Error>,
}

#[derive(Debug)]
enum Sink {
    Memory(Vec<u8>),
    File(std::fs::File),
    /// The disk rejected the blob. Its bytes are read anyway, so that the following frames can be
    /// read.
    Lost(std::io::Error),
}

impl<R: AsyncRead + Unpin, M: MessageSet> FrameReader<R, M> {
    /// Reads from `inner`; `who` is its name in messages.
    pub fn new(inner: R, who: &'static str) -> Self {
        Self {
            inner,
            who,
            limits: FrameLimits::default(),
            spill_over: SPILL_OVER,
            buffer: BytesMut::new(),
            read: READ_FIRST,
            partial: None,
        }
    }

    /// Sets the maximum size of blobs in memory, for senders from which that many bytes are
    /// requested at once.
    #[must_use]
    pub(crate) fn spilling_over(self, bytes: u64) -> Self {
        Self {
            spill_over: bytes,
            ..self
        }
    }

    /// Returns the next frame; `None` at a clean end.
    pub async fn next(&mut self) -> Result<Option<Frame<M>>> {
        loop {
            if let Some(frame) = self.advance()? {
                return Ok(Some(frame));
            }
            let read = self.fill().await?;
            if read == 0 {
                return if self.buffer.is_empty() && self.partial.is_none() {
                    Ok(None)
                } else {
                    Err(SandboxErrorKind::Cut { who: self.who }.into())
                };
            }
        }
    }

    /// Returns the next bytes, unread, if no frame has started; `None` at the end. Dropping the
    /// future loses nothing.
    pub async fn next_bytes(&mut self, most: usize) -> Result<Option<BytesMut>> {
        if self.buffer.is_empty() {
            let read = self.fill().await?;
            if read == 0 {
                return Ok(None);
            }
        }
        let length = self.buffer.len().min(most);
        Ok(Some(self.buffer.split_to(length)))
    }

    /// Reads once, and returns the number of bytes; 0 at the end. Dropping the future loses nothing.
    async fn fill(&mut self) -> Result<usize> {
        let most = self.read;
        self.buffer.reserve(most);
        let mut part = (&mut self.buffer).limit(most);
        let read = match self.inner.read_buf(&mut part).await {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            read => read.during("read from a channel")?,
        };
        self.read = if read == most { READ } else { READ_FIRST };
        Ok(read)
    }

    /// Processes the buffer's content as far as possible.
    fn advance(&mut self) -> Result<Option<Frame<M>>> {
        if self.partial.is_none() {
            let Some(prefix) = self.buffer.first_chunk::<{ Prefix::LEN }>() else {
                return Ok(None);
            };
            let prefix = Prefix::parse(*prefix, &self.limits).map_err(|error| self.broken(&error))?;
            let end = Prefix::LEN + prefix.header_bytes();
            let Some(header) = self.buffer.get(Prefix::LEN..end) else {
                return Ok(None);
            };
            let header = prefix.header(header).map_err(|error| self.broken(&error))?;
            self.buffer.advance(end);
            self.partial = Some(PartialFrame {
                header,
                blobs: Vec::new(),
                current: None,
                lost: None,
            });
        }
        let Some(partial) = &mut self.partial else {
            return Ok(None);
        };
        if !partial.fill(&mut self.buffer, self.spill_over) {
            return Ok(None);
        }
        let partial = self.partial.take().expect("it was there a line ago");
        if let Some(source) = partial.lost {
            return Err(SandboxErrorKind::Spill {
                who: self.who,
                directory: std::env::temp_dir(),
                source,
            }
            .into());
        }
        Ok(Some(Frame {
            message: partial.header.message,
            blobs: partial.blobs,
        }))
    }

    fn broken(&self, error: &cellblock_protocol::FrameError) -> Error {
        Error::protocol(self.who, cellblock_jail::error::chain(error))
    }
}

impl<M> PartialFrame<M> {
    /// Moves bytes from the buffer to blobs; `true` when all blobs are complete.
    fn fill(&mut self, buffer: &mut BytesMut, spill_over: u64) -> bool {
        while let Some(length) = self.header.blobs.get(self.blobs.len()).copied() {
            let (sink, filled) = match &mut self.current {
                Some(current) => current,
                none => none.insert((Sink::new(length, spill_over), 0)),
            };
            let wanted = usize::try_from(length - *filled).unwrap_or(usize::MAX);
            let taken = buffer.split_to(wanted.min(buffer.len()));
            sink.write(&taken);
            *filled += taken.len() as u64;
            if *filled < length {
                return false;
            }
            match self.current.take() {
                Some((Sink::Memory(bytes), _)) => self.blobs.push(Blob::Memory(bytes)),
                Some((Sink::File(file), length)) => self.blobs.push(Blob::File(file, length)),
                Some((Sink::Lost(error), _)) => {
                    self.blobs.push(Blob::Memory(Vec::new()));
                    self.lost = Some(error);
                }
                None => {}
            }
        }
        true
    }
}

impl Sink {
    fn new(length: u64, spill_over: u64) -> Self {
        if length <= spill_over {
            // Grows as bytes arrive: an announced length alone reserves nothing.
            return Self::Memory(Vec::new());
        }
        tempfile::tempfile().map_or_else(Self::Lost, Self::File)
    }

    fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Memory(memory) => memory.extend_from_slice(bytes),
            Self::File(file) => {
                if let Err(error) = file.write_all(bytes) {
                    *self = Self::Lost(error);
                }
            }
            Self::Lost(_) => {}
        }
    }
}

impl<M> FrameReader<SocketReader, M> {
    /// Returns whether unread bytes have arrived.
    pub(crate) fn has_more(&self) -> bool {
        self.inner.has_more()
    }
}

/// Writes one frame.
pub async fn write_frame<M: MessageSet>(
    to: &mut (impl AsyncWrite + Unpin),
    message: &M,
    blobs: &[&[u8]],
) -> Result<()> {
    let head =
        encode(message, blobs, &FrameLimits::default()).map_err(|error| Error::request(error.to_string()))?;
    let mut parts: Vec<&[u8]> = vec![&head];
    parts.extend(blobs);
    write_parts(to, parts).await
}

/// Writes the parts of a frame, of which the first is its head.
pub(crate) async fn write_parts(to: &mut (impl AsyncWrite + Unpin), mut parts: Vec<&[u8]>) -> Result<()> {
    while parts.iter().any(|part| !part.is_empty()) {
        let slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut written = to.write_vectored(&slices).await.during("write to a channel")?;
        for part in &mut parts {
            let taken = written.min(part.len());
            *part = &part[taken..];
            written -= taken;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use cellblock_protocol::FromGuest;

    use super::*;

    #[tokio::test]
    async fn a_frame_arrives_whole_however_it_is_cut() {
        let message = FromGuest::Content {
            request: 7,
            eof: true,
            stamp: None,
        };
        let mut bytes = encode(&message, &[b"abc", b""], &FrameLimits::default()).unwrap();
        bytes.extend(b"abc");
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let mut reader = FrameReader::<_, FromGuest>::new(AsyncReadExt::chain(first, second), "guest");
            let frame = reader.next().await.unwrap().unwrap();
            assert_eq!(frame.message, message);
            assert_eq!(frame.blobs.iter().map(Blob::len).collect::<Vec<_>>(), [3, 0]);
            assert!(reader.next().await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn a_large_blob_goes_to_a_file() {
        let blob = vec![7_u8; 3 * 1024 * 1024];
        let mut bytes = encode(
            &FromGuest::Content {
                request: 1,
                eof: false,
                stamp: None,
            },
            &[&blob],
            &FrameLimits::default(),
        )
        .unwrap();
        bytes.extend(&blob);
        let mut reader = FrameReader::<_, FromGuest>::new(bytes.as_slice(), "guest");
        let frame = reader.next().await.unwrap().unwrap();
        assert!(matches!(&frame.blobs[0], Blob::File(_, length) if *length == blob.len() as u64));
        let mut read = Vec::new();
        frame.blobs[0].reader().read_to_end(&mut read).unwrap();
        assert_eq!(read, blob);
    }

    #[tokio::test]
    async fn a_blob_that_the_disk_rejects_loses_only_its_own_frame() {
        let lost = FromGuest::Content {
            request: 1,
            eof: false,
            stamp: None,
        };
        let next = FromGuest::Ok { request: 2 };
        let mut bytes = encode(&lost, &[b"abcdef"], &FrameLimits::default()).unwrap();
        bytes.extend(b"abcdef");
        bytes.extend(encode(&next, &[], &FrameLimits::default()).unwrap());
        let mut reader = FrameReader::<_, FromGuest>::new(bytes.as_slice(), "guest");
        reader.buffer.extend_from_slice(&bytes);
        reader.inner = &[];
        assert!(reader.partial.is_none());
        reader.partial = Some(PartialFrame {
            header: Header {
                message: lost,
                blobs: vec![6],
            },
            blobs: Vec::new(),
            current: Some((Sink::Lost(std::io::ErrorKind::StorageFull.into()), 0)),
            lost: None,
        });
        let head = bytes.len() - 6 - encode(&next, &[], &FrameLimits::default()).unwrap().len();
        reader.buffer.advance(head);
        let error = reader.next().await.unwrap_err();
        assert!(error.is_spill(), "{error}");
        assert_eq!(reader.next().await.unwrap().unwrap().message, next);
    }

    #[tokio::test]
    async fn a_truncated_frame_is_an_error_of_its_sender() {
        let bytes = encode(&FromGuest::Hello { generation: 1 }, &[], &FrameLimits::default()).unwrap();
        let mut reader = FrameReader::<_, FromGuest>::new(&bytes[..bytes.len() - 1], "guest");
        let error = reader.next().await.unwrap_err();
        assert!(error.is_cut());
        assert_eq!(error.to_string(), "the guest ended in the middle of a frame");
    }
}
