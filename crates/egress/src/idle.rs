//! A stream that ends when nothing passes through it for some time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails reads and writes with `TimedOut` if neither made progress for the timeout.
#[derive(Debug)]
pub(crate) struct IdleStream<S> {
    stream: S,
    timeout: Duration,
    last: Instant,
    /// Polled only while the stream is pending, and moved only when it fires: a stream that is busy
    /// pays for reading the clock.
    alarm: Pin<Box<Sleep>>,
}

impl<S> IdleStream<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self {
            stream,
            timeout,
            last: Instant::now(),
            alarm: Box::pin(sleep(timeout)),
        }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.last = Instant::now();
            return polled;
        }
        while self.alarm.as_mut().poll(context).is_ready() {
            let deadline = self.last + self.timeout;
            if deadline <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch(context, polled)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            // A flush with nothing to do is not progress.
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => self.watch(context, Poll::Pending),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    #[tokio::test]
    async fn a_stream_ends_when_nothing_passes_for_the_timeout() {
        let (mut peer, stream) = duplex(64);
        let mut idle = IdleStream::new(stream, TIMEOUT);
        let mut byte = [0];
        let feeding = async {
            for _ in 0..2 {
                sleep(Duration::from_secs(2)).await;
                peer.write_all(b"a").await.unwrap();
            }
            Instant::now()
        };
        let reading = async {
            let mut last = Instant::now();
            let error = loop {
                match idle.read_exact(&mut byte).await {
                    Ok(_) => last = Instant::now(),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(last.elapsed() >= TIMEOUT);
            last
        };
        let (fed, last) = tokio::join!(feeding, reading);
        assert!(last >= fed, "the stream ended before the second byte");
    }

    #[tokio::test]
    async fn a_write_that_nobody_reads_ends() {
        let (peer, stream) = duplex(8);
        let mut idle = IdleStream::new(stream, Duration::from_millis(50));
        let error = idle.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(peer);
    }
}
