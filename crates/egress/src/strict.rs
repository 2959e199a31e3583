//! A stream of requests whose heads are checked one by one before the HTTP parser reads them.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use crate::head::{self, BodyFraming};

/// Maximum size of a head in bytes.
pub(crate) const MAX_HEAD: usize = 32 << 10;
/// Bytes of a body that are read at once.
const PIECE: u64 = 64 << 10;

/// The results for the heads that the parser has read and the service has not, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts(Arc<Mutex<VecDeque<FramingVerdict>>>);

pub(crate) type FramingVerdict = Result<BodyFraming, &'static str>;

impl Verdicts {
    fn push(&self, verdict: FramingVerdict) {
        self.0.lock().push_back(verdict);
    }

    /// Returns the result for the next head. There is one for each request that the parser returns.
    pub(crate) fn next(&self) -> FramingVerdict {
        let next = self.0.lock().pop_front();
        next.unwrap_or(Err("its head could not be checked"))
    }
}

/// Hands out one head, then the body that belongs to it, then the next head. Where a body has an
/// end that only the parser can find, or where a head is refused, the rest passes unchecked, and
/// the service ends the connection with its response.
#[derive(Debug)]
pub(crate) struct StrictHeads<S> {
    stream: S,
    /// Bytes that were read and not handed out.
    buffer: BytesMut,
    part: MessagePart,
    verdicts: Verdicts,
}

#[derive(Clone, Copy, Debug)]
enum MessagePart {
    /// A head, of which so many bytes were searched for its end.
    Head(usize),
    /// So many bytes of a checked head, and what follows it.
    Checked(usize, BodyFraming),
    /// So many bytes of a body.
    Body(u64),
    /// The rest of the stream.
    Rest,
}

impl<S> StrictHeads<S> {
    pub(crate) fn new(stream: S) -> (Self, Verdicts) {
        let verdicts = Verdicts::default();
        let strict = Self {
            stream,
            buffer: BytesMut::new(),
            part: MessagePart::Head(0),
            verdicts: verdicts.clone(),
        };
        (strict, verdicts)
    }

    /// Hands out bytes of the buffer, at most `limit`.
    fn hand_out(&mut self, buffer: &mut ReadBuf<'_>, limit: usize) -> usize {
        let size = limit.min(buffer.remaining()).min(self.buffer.len());
        buffer.put_slice(&self.buffer[..size]);
        self.buffer.advance(size);
        size
    }

    /// Looks for the end of the head in the buffer.
    fn search(&mut self, from: usize) {
        self.part = match head::end(&self.buffer, from.saturating_sub(2)) {
            Some(end) if end <= MAX_HEAD => {
                let verdict = head::check(&self.buffer[..end]);
                self.verdicts.push(verdict);
                MessagePart::Checked(end, verdict.unwrap_or(BodyFraming::Open))
            }
            // The parser answers a head that is too large with 431.
            None if self.buffer.len() <= MAX_HEAD => MessagePart::Head(self.buffer.len()),
            _ => MessagePart::Rest,
        };
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictHeads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match this.part {
                MessagePart::Head(searched) => {
                    if searched < this.buffer.len() {
                        this.search(searched);
                        continue;
                    }
                    let read = ready!(poll_read_buf(
                        Pin::new(&mut this.stream),
                        context,
                        &mut this.buffer
                    ))?;
                    if read == 0 {
                        // The parser reports a head that ends too early.
                        this.part = MessagePart::Rest;
                    }
                }
                MessagePart::Checked(left, framing) => {
                    let left = left - this.hand_out(buffer, left);
                    this.part = match framing {
                        _ if left > 0 => MessagePart::Checked(left, framing),
                        BodyFraming::Length(0) => MessagePart::Head(0),
                        BodyFraming::Length(length) => MessagePart::Body(length),
                        BodyFraming::Chunked | BodyFraming::Open => MessagePart::Rest,
                    };
                    return Poll::Ready(Ok(()));
                }
                MessagePart::Body(left) => {
                    let limit = left.min(PIECE).min(buffer.remaining() as u64);
                    let limit = usize::try_from(limit).unwrap_or_default();
                    let read = if this.buffer.is_empty() {
                        let mut piece = ReadBuf::new(buffer.initialize_unfilled_to(limit));
                        ready!(Pin::new(&mut this.stream).poll_read(context, &mut piece))?;
                        let read = piece.filled().len();
                        buffer.advance(read);
                        read
                    } else {
                        this.hand_out(buffer, limit)
                    };
                    this.part = match left - read as u64 {
                        0 => MessagePart::Head(0),
                        left => MessagePart::Body(left),
                    };
                    return Poll::Ready(Ok(()));
                }
                MessagePart::Rest if this.buffer.is_empty() => {
                    return Pin::new(&mut this.stream).poll_read(context, buffer);
                }
                MessagePart::Rest => {
                    this.hand_out(buffer, usize::MAX);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictHeads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
