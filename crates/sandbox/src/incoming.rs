//! The reading half of a channel whose other end is hostile.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// Reads until the socket is empty.
///
/// Descriptors that are sent along with bytes cut a read short even if more bytes follow. Tokio
/// takes a short read for the end of the available data, so a sandbox could hold back its frames in
/// the host's socket; this type relies only on the operating system.
#[derive(Debug)]
pub struct Incoming(OwnedReadHalf);

impl Incoming {
    /// Takes over a half.
    pub fn new(half: OwnedReadHalf) -> Self {
        Self(half)
    }

    /// Returns whether bytes are available now, including those that the runtime does not know of
    /// yet.
    pub(crate) fn has_more(&self) -> bool {
        let stream: &UnixStream = self.0.as_ref();
        rustix::io::ioctl_fionread(stream).is_ok_and(|bytes| bytes > 0)
    }
}

impl AsyncRead for Incoming {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream: &UnixStream = self.0.as_ref();
        loop {
            ready!(stream.poll_read_ready(context))?;
            match stream.try_read(buffer.initialize_unfilled()) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
