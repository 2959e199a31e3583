//! The bytes of a connection: a client that does not read loses it, and the server can end it.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::state::connections::ConnectionPlace;

/// A connection's stream, also after it is upgraded to another protocol. It has the connection's place.
#[derive(Debug)]
pub(super) struct GuardedStream<S> {
    stream: S,
    write_timeout: Duration,
    /// End of the time in which the client has to read something; `None` while it does.
    stalled: Option<Pin<Box<Sleep>>>,
    /// One for each side: another task may read than writes.
    closing: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    place: Arc<ConnectionPlace>,
}

/// Sides of a stream.
const READ: usize = 0;
const WRITE: usize = 1;

impl<S> GuardedStream<S> {
    pub(super) fn new(stream: S, place: Arc<ConnectionPlace>, write_timeout: Duration) -> Self {
        let closing: &CancellationToken = &place.connection.closing;
        let closed = || Box::pin(closing.clone().cancelled_owned());
        Self {
            stream,
            write_timeout,
            stalled: None,
            closing: [closed(), closed()],
            place,
        }
    }

    fn check(&mut self, side: usize, context: &mut Context<'_>) -> io::Result<()> {
        match self.closing[side].as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(
                ErrorKind::ConnectionAborted,
                "the server ended the connection",
            )),
            Poll::Pending => Ok(()),
        }
    }

    /// Passes on a result of writing. While there is none, the client has to read in time.
    fn watch<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let is_stalled = &self.place.connection.is_stalled;
        is_stalled.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.write_timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| match Instant::now().checked_add(limit) {
                Some(end) => Box::pin(sleep_until(end)),
                None => Box::pin(sleep(Duration::MAX)),
            });
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("the client has read nothing for {} seconds", limit.as_secs_f64()),
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(READ, context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(WRITE, context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(WRITE, context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(WRITE, context)?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(shut, context)
    }
}
