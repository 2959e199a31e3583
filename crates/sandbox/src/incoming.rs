//! The two halves of a channel whose other end is hostile.
//!
//! Tokio's own halves hear of room to write as often as the other end reads, so that each frame
//! would wake a thread that has nothing to do. Here only readable bytes wake one, and room to write
//! does while a frame waits for it.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;

/// Takes a channel apart.
pub fn split(channel: UnixStream) -> io::Result<(SocketReader, SocketWriter)> {
    let socket = Arc::new(watch(channel.into_std()?, Interest::READABLE)?);
    let outgoing = SocketWriter {
        socket: Arc::clone(&socket),
        blocked: None,
    };
    Ok((SocketReader(socket), outgoing))
}

/// Registers a socket for one kind of readiness.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types that may give their descriptor away; these keep theirs"
)]
fn watch<T: AsRawFd>(socket: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(socket, interest)
}

/// Reads until the socket is empty.
///
/// Descriptors that are sent along with bytes cut a read short even if more bytes follow. Tokio
/// takes a short read for the end of the available data, so a sandbox could hold back its frames in
/// the host's socket; this type relies only on the operating system.
#[derive(Debug)]
pub struct SocketReader(Arc<AsyncFd<Socket>>);

impl SocketReader {
    /// Returns whether bytes are available now, including those that the runtime does not know of
    /// yet.
    pub(crate) fn has_more(&self) -> bool {
        rustix::io::ioctl_fionread(self.0.get_ref()).is_ok_and(|bytes| bytes > 0)
    }
}

impl AsyncRead for SocketReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            match self.0.get_ref().read(buffer.initialize_unfilled()) {
                Ok(length) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Writes. The other end sees the end of the channel when this is dropped.
#[derive(Debug)]
pub struct SocketWriter {
    socket: Arc<AsyncFd<Socket>>,
    /// Another descriptor of the socket, watched while it has no room.
    blocked: Option<AsyncFd<OwnedFd>>,
}

impl SocketWriter {
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match self.socket.get_ref().write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }
}

impl AsyncWrite for SocketWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut room = match &self.blocked {
                Some(blocked) => Some(ready!(blocked.poll_write_ready(context))?),
                None => None,
            };
            match self.write(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(room) = &mut room {
                        room.clear_ready();
                    } else {
                        let again = self.socket.get_ref().as_fd().try_clone_to_owned()?;
                        self.blocked = Some(watch(again, Interest::WRITABLE)?);
                    }
                }
                written => {
                    self.blocked = None;
                    return Poll::Ready(written);
                }
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
    }
}

impl AsFd for SocketWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl Drop for SocketWriter {
    fn drop(&mut self) {
        // The other half may outlive this one. Without a peer there is nobody to tell.
        let _ = self.socket.get_ref().shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// More than a socket holds.
    const MUCH: usize = 4 << 20;

    #[tokio::test]
    async fn a_writer_waits_for_room_and_goes_on() {
        let (one, other) = UnixStream::pair().unwrap();
        let (_, mut writer) = split(one).unwrap();
        let (mut reader, _other_writer) = split(other).unwrap();
        let bytes: Vec<u8> = (0..MUCH).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let sent = bytes.clone();
        let writing = tokio::spawn(async move { writer.write_all(&sent).await });
        let mut read = vec![0; MUCH];
        reader.read_exact(&mut read).await.unwrap();
        writing.await.unwrap().unwrap();
        assert!(read == bytes, "the bytes that arrived are others");
        // The writer is gone.
        assert_eq!(reader.read(&mut read).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_writer_without_a_reader_fails() {
        let (one, other) = UnixStream::pair().unwrap();
        let (_reader, mut writer) = split(one).unwrap();
        drop(other);
        assert!(writer.write_all(b"x").await.is_err());
    }
}
