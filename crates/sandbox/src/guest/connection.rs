//! TCP connections with programs of a sandbox, over its own loopback device.
//!
//! ```text
//! SandboxStream ⇄ duplex ⇄ pump ── send, receive ──> guest ⇄ socket ⇄ program
//! ```
//!
//! Each part is requested, so that a side that is slow makes the other wait, and nobody else.
//!
//! Connections pass through the guest's channel, not as descriptors. It costs a copy and a request per
//! part, and the same code serves every backend, including one on another machine.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cellblock_protocol::{Blob, FromGuest, ToGuest};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{ANSWER_LIMIT, GuestLink, unexpected};
use crate::error::Result;

/// Maximum number of bytes in one message.
const PART: u32 = 256 * 1024;
/// Maximum time to deliver what was written to a stream before it was dropped.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);

/// A connection with a program of the sandbox. Dropping it ends the connection.
#[derive(Debug)]
pub struct SandboxConnection(EndGuard);

/// A port of the sandbox on which the host listens. Dropping it closes the port.
#[derive(Debug)]
pub struct SandboxListener(EndGuard);

/// A connection as a stream of bytes. What was written before it is dropped is still delivered.
#[derive(Debug)]
pub struct SandboxStream {
    stream: DuplexStream,
    /// Dropped with the stream.
    _alive: oneshot::Sender<()>,
}

/// Something with a number that the guest ends when it is dropped.
#[derive(Debug)]
struct EndGuard {
    link: GuestLink,
    number: u64,
}

impl GuestLink {
    /// Returns the TCP ports on which programs of the sandbox listen, sorted.
    pub async fn ports(&self) -> Result<Vec<u16>> {
        let message = ToGuest::Ports { request: 0 };
        let (frame, _) = self
            .ask_numbered(message, None, "list the ports of", "the sandbox", ANSWER_LIMIT)
            .await?;
        match frame.message {
            FromGuest::Ports { ports, .. } => Ok(ports),
            _ => Err(unexpected()),
        }
    }

    /// Connects to a TCP port of the sandbox.
    pub async fn connect(&self, port: u16) -> Result<SandboxConnection> {
        let message = ToGuest::Connect { request: 0, port };
        self.numbered(message, "connect to port", &port.to_string(), ANSWER_LIMIT)
            .await
            .map(SandboxConnection)
    }

    /// Listens on a TCP port of the sandbox.
    pub async fn listen(&self, port: u16) -> Result<SandboxListener> {
        let message = ToGuest::Listen { request: 0, port };
        self.numbered(message, "listen on port", &port.to_string(), ANSWER_LIMIT)
            .await
            .map(SandboxListener)
    }

    async fn numbered(
        &self,
        message: ToGuest,
        action: &'static str,
        object: &str,
        limit: Duration,
    ) -> Result<EndGuard> {
        let (_, number) = self.ask_numbered(message, None, action, object, limit).await?;
        Ok(EndGuard {
            link: self.clone(),
            number,
        })
    }
}

impl SandboxListener {
    /// Waits for a program to connect. If this future is dropped, the next connection is lost.
    pub async fn accept(&self) -> Result<SandboxConnection> {
        let EndGuard { link, number } = &self.0;
        let message = ToGuest::Accept {
            request: 0,
            listener: *number,
        };
        link.numbered(message, "accept a connection of", "the sandbox", Duration::MAX)
            .await
            .map(SandboxConnection)
    }
}

impl SandboxConnection {
    /// Receives bytes; none means that the program will send no more. If this future is dropped,
    /// bytes are lost.
    pub async fn receive(&self) -> Result<Vec<u8>> {
        let message = ToGuest::Receive {
            request: 0,
            connection: self.0.number,
            length: PART,
        };
        let asked = self.ask(message, None, "receive from", Duration::MAX);
        match asked.await? {
            (FromGuest::Content { .. }, Some(Blob::Memory(bytes))) if bytes.len() <= PART as usize => {
                Ok(bytes)
            }
            _ => Err(unexpected()),
        }
    }

    /// Sends bytes; `close` says that no more come. Completes when the kernel has taken them for the program.
    pub async fn send(&self, bytes: Vec<u8>, close: bool) -> Result<()> {
        let message = ToGuest::Send {
            request: 0,
            connection: self.0.number,
            close,
        };
        self.ask(message, Some(bytes), "send over", Duration::MAX)
            .await
            .map(drop)
    }

    async fn ask(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
        action: &'static str,
        limit: Duration,
    ) -> Result<(FromGuest, Option<Blob>)> {
        let EndGuard { link, number } = &self.0;
        let object = format!("connection {number}");
        let (mut frame, _) = link.ask_numbered(message, blob, action, &object, limit).await?;
        Ok((frame.message, frame.blobs.pop()))
    }

    /// Makes it a stream, and drops what is `held` when it has ended.
    pub fn into_stream(self, held: impl Send + 'static) -> SandboxStream {
        let (ours, stream) = tokio::io::duplex(PART as usize);
        let (alive, dropped) = oneshot::channel();
        tokio::spawn(async move {
            self.pump(ours, dropped).await;
            drop(held);
        });
        SandboxStream {
            stream,
            _alive: alive,
        }
    }

    /// Moves bytes until both directions have ended, or the stream was dropped and what it wrote is
    /// delivered.
    async fn pump(self, stream: DuplexStream, mut dropped: oneshot::Receiver<()>) {
        let (mut read, mut write) = tokio::io::split(stream);
        let out = async {
            let mut part = vec![0; PART as usize];
            loop {
                let length = read.read(&mut part).await?;
                self.send(part[..length].to_vec(), length == 0)
                    .await
                    .map_err(io::Error::other)?;
                if length == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        let back = async {
            loop {
                let bytes = self.receive().await.map_err(io::Error::other)?;
                if bytes.is_empty() {
                    return write.shutdown().await;
                }
                write.write_all(&bytes).await?;
            }
        };
        tokio::pin!(out, back);
        let mut delivered = false;
        let both = async {
            tokio::select! {
                // One that fails ends the other.
                sent = &mut out => {
                    delivered = true;
                    if sent.is_ok() {
                        let _ = back.await;
                    }
                }
                received = &mut back => {
                    if received.is_ok() {
                        let _ = (&mut out).await;
                    }
                    delivered = true;
                }
            }
        };
        tokio::select! {
            () = both => return,
            _ = &mut dropped => {}
        }
        if !delivered {
            let _ = tokio::time::timeout(DELIVERY_LIMIT, out).await;
        }
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let (link, connection) = (self.link.clone(), self.number);
        // Without a runtime, the sandbox is gone as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { link.tell(ToGuest::HangUp { connection }).await });
        }
    }
}

impl AsyncRead for SandboxStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for SandboxStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
