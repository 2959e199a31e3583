//! A connection to a server whose bytes are counted against the quota, and that ends when the rules of its
//! session no longer allow it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::live::{CutConnection, OpenTarget};
use crate::meter::{Direction, Flow, SessionMeter};

/// Counts the bytes of a stream, and ends it when the session's quota is used up, or when its rules no
/// longer allow it. The quota is checked with each piece, so at most one piece more is sent than the quota
/// allows; a piece that is received beyond it is dropped.
#[derive(Debug)]
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Arc<SessionMeter>,
    flow: Arc<Flow>,
    open: Arc<OpenTarget>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> MeteredStream<S> {
    pub(crate) fn new(stream: S, meter: Arc<SessionMeter>, open: Arc<OpenTarget>) -> Self {
        Self {
            stream,
            meter,
            flow: Arc::default(),
            cut: Box::pin(open.cut.clone().cancelled_owned()),
            open,
        }
    }

    /// Returns the counters of this connection.
    pub(crate) fn flow(&self) -> Arc<Flow> {
        Arc::clone(&self.flow)
    }

    /// Returns an error if a piece may not be sent.
    fn may_send(&self) -> io::Result<()> {
        if self.open.cut.is_cancelled() {
            return Err(cut());
        }
        self.meter.may_transfer()
    }
}

fn cut() -> io::Error {
    io::Error::other(CutConnection)
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Also wakes the reader of a stream on which nothing comes.
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(cut()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        Poll::Ready(self.meter.transfer(&self.flow, Direction::Down, read))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.may_send()?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.meter.transfer(&self.flow, Direction::Up, written).ok();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_send()?;
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, bytes))?;
        self.meter.transfer(&self.flow, Direction::Up, written).ok();
        Poll::Ready(Ok(written))
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
