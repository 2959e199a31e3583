//! Bytes of a connection to Postgres: encrypted, and without messages that are too large for memory.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::sql::dial::Wire;

/// Encrypts a connection.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    max_message: u64,
}

impl Tls {
    pub(super) const fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        Self {
            config,
            name,
            max_message: u64::MAX,
        }
    }

    /// With messages of at most so many bytes.
    pub(super) fn bounded(self, max_message: u64) -> Self {
        Self { max_message, ..self }
    }
}

impl TlsConnect<WireLimiter> for Tls {
    type Stream = WireLimiter;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<WireLimiter>>;

    fn connect(self, wire: WireLimiter) -> Self::Future {
        async move {
            let stream = TlsConnector::from(self.config).connect(self.name, wire).await?;
            Ok(WireLimiter::new(Box::new(stream), self.max_message))
        }
        .boxed()
    }
}

impl TlsStream for WireLimiter {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// A message is larger than the limit.
#[derive(Debug, thiserror::Error)]
#[error("a row is larger than the limit `max_result`; select fewer columns, or parts of them")]
pub(super) struct LargeRow;

/// A connection that fails at a message that is too large, before it is read: a row is one message,
/// which would be in memory as a whole.
pub(super) struct WireLimiter {
    wire: Box<dyn Wire>,
    max_message: u64,
    /// The kind and the length of a message, as far as they have been read.
    header: Vec<u8>,
    /// Bytes of the message that are still to come.
    body: u64,
}

impl WireLimiter {
    /// Without a limit, for bytes that are not messages.
    pub(super) fn raw(wire: Box<dyn Wire>) -> Self {
        Self::new(wire, u64::MAX)
    }

    pub(super) fn new(wire: Box<dyn Wire>, max_message: u64) -> Self {
        Self {
            wire,
            max_message,
            header: Vec::with_capacity(5),
            body: 0,
        }
    }

    /// Follows the messages in what was read.
    fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(byte) = bytes.first() {
            if self.body > 0 {
                let read = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
                self.body -= read as u64;
                bytes = &bytes[read..];
                continue;
            }
            self.header.push(*byte);
            bytes = &bytes[1..];
            if let [_, a, b, c, d] = self.header[..] {
                // The length counts itself.
                self.body = u64::from(u32::from_be_bytes([a, b, c, d])).saturating_sub(4);
                self.header.clear();
                if self.body > self.max_message {
                    return Err(io::Error::other(LargeRow));
                }
            }
        }
        Ok(())
    }
}

impl AsyncRead for WireLimiter {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(context, into))?;
        Poll::Ready(self.follow(&into.filled()[before..]))
    }
}

impl AsyncWrite for WireLimiter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}
