//! A WebSocket of another gateway that ends in the middle: its client gets a close frame that says so.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Code of the close frame: an unexpected condition.
const UNEXPECTED: u16 = 1011;
/// Reason in the close frame, of at most 123 bytes.
const REASON: &str =
    "the server that had this session ended or cannot be reached; what ran may have run in part";
/// First byte of a close frame.
const CLOSE: u8 = 0x88;
/// Bits of the first byte that say what a frame is.
const OPCODE: u8 = 0x0f;
/// Largest length that the second byte of a frame holds itself.
const SHORT: u8 = 125;
/// Longest head of a frame.
const HEAD: usize = 14;

/// The code and the reason with which the client's connection is closed.
pub(super) const fn farewell() -> (u16, &'static str) {
    (UNEXPECTED, REASON)
}

/// The frames that pass, as far as their bounds are concerned.
#[derive(Debug, Default)]
struct FrameBounds {
    head: [u8; HEAD],
    /// Bytes of the head so far.
    known: usize,
    /// Bytes of the frame that are still to come.
    left: u64,
    is_closed: bool,
}

impl FrameBounds {
    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let passed = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.head[self.known] = bytes[0];
            self.known += 1;
            bytes = &bytes[1..];
            if let Some(length) = self.length() {
                self.is_closed |= self.head[0] & OPCODE == CLOSE & OPCODE;
                self.left = length;
                self.known = 0;
            }
        }
    }

    /// Returns the length of the frame once its head is whole.
    fn length(&self) -> Option<u64> {
        let second = *self.head.get(1).filter(|_| self.known >= 2)?;
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        let (wide, short) = match second & 0x7f {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        if self.known < 2 + wide + mask {
            return None;
        }
        let wide = self.head[2..2 + wide].iter();
        Some(wide.fold(short, |length, byte| length << 8 | u64::from(*byte)))
    }

    fn is_between_frames(&self) -> bool {
        self.known == 0 && self.left == 0
    }
}

/// The connection to the other gateway. If it ends between two frames and without a close frame,
/// one is read from it.
#[derive(Debug)]
pub(super) struct ClosingSocket<S> {
    stream: S,
    bounds: FrameBounds,
    /// Bytes that are still to be read after the end.
    farewell: Option<Vec<u8>>,
}

impl<S> ClosingSocket<S> {
    /// `is_websocket`: whether the protocol has frames at all.
    pub(super) fn new(stream: S, is_websocket: bool) -> Self {
        let bounds = FrameBounds {
            is_closed: !is_websocket,
            ..FrameBounds::default()
        };
        Self {
            stream,
            bounds,
            farewell: None,
        }
    }

    /// Returns what is read at the end.
    fn rest(&mut self) -> &mut Vec<u8> {
        let bounds = &self.bounds;
        self.farewell.get_or_insert_with(|| {
            if bounds.is_closed || !bounds.is_between_frames() {
                return Vec::new();
            }
            let (code, reason) = farewell();
            let length = u8::try_from(reason.len() + 2).unwrap_or(SHORT).min(SHORT);
            let mut frame = vec![CLOSE, length];
            frame.extend(code.to_be_bytes());
            frame.extend(reason.bytes());
            frame.truncate(usize::from(length) + 2);
            frame
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClosingSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.farewell.is_none() {
            let before = buffer.filled().len();
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
            if let Err(error) = &read {
                tracing::debug!(%error, "the connection to another gateway broke");
            }
            let passed = &buffer.filled()[before..];
            if !passed.is_empty() {
                self.bounds.pass(passed);
                return Poll::Ready(Ok(()));
            }
        }
        let rest = self.rest();
        let read = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..read]);
        rest.drain(..read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClosingSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.farewell.as_ref().is_some_and(Vec::is_empty) {
            // The client's answer to the end, which ends its connection.
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            // What is read says that the other gateway has ended.
            Err(_) => Poll::Ready(Ok(bytes.len())),
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = ready!(Pin::new(&mut self.stream).poll_flush(context));
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = ready!(Pin::new(&mut self.stream).poll_shutdown(context));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Reads a connection that ends after these bytes, which come in pieces of a size.
    async fn read(bytes: &[u8], size: usize, is_websocket: bool) -> Vec<u8> {
        let (mut other, here) = tokio::io::duplex(size);
        let sent = bytes.to_vec();
        tokio::spawn(async move { other.write_all(&sent).await });
        let mut read = Vec::new();
        let mut socket = ClosingSocket::new(here, is_websocket);
        socket.read_to_end(&mut read).await.unwrap();
        read
    }

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        match u16::try_from(length) {
            Ok(short @ 0..126) => frame.push(u8::try_from(short).unwrap()),
            Ok(medium) => {
                frame.push(126);
                frame.extend(medium.to_be_bytes());
            }
            Err(_) => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(std::iter::repeat_n(CLOSE, length));
        frame
    }

    #[tokio::test]
    async fn a_connection_that_ends_between_frames_is_closed_with_a_reason() {
        assert!(REASON.len() <= 123);
        for lengths in [&[][..], &[0], &[125, 3], &[126, 70_000, 1]] {
            let bytes: Vec<u8> = lengths.iter().flat_map(|length| frame(0x82, *length)).collect();
            for size in [1, 7, 1 << 20] {
                let read = read(&bytes, size, true).await;
                let last = read.strip_prefix(&bytes[..]).unwrap();
                assert_eq!((last[0], usize::from(last[1])), (CLOSE, last.len() - 2));
                assert_eq!(last[2..4], UNEXPECTED.to_be_bytes());
                assert_eq!(&last[4..], REASON.as_bytes());
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_added_within_a_frame_after_a_close_frame_or_to_another_protocol() {
        let whole = frame(0x82, 300);
        assert_eq!(read(&whole[..299], 64, true).await, whole[..299]);
        assert_eq!(read(&whole[..2], 64, true).await, whole[..2]);
        let closed = frame(CLOSE, 2);
        assert_eq!(read(&closed, 64, true).await, closed);
        assert_eq!(read(b"abc", 64, false).await, b"abc");
    }
}
