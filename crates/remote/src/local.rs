//! Connecting to the sandboxes of another process of this machine, over streams that the caller opens.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::link::Link;
use super::mux::{CLOSED, MuxTransport, Pulse};
use super::wire::{Hello, MAX_MESSAGE};
use cellblock_sandbox::Result;
use cellblock_sandbox::backend::{BoxFuture, Lack};

/// A message without content, as [`framed`] streams carry it. It ends a connection over a stream
/// that has no end of its own.
pub const END: [u8; 4] = [0; 4];

/// Opens a stream on whose other end [`framed`] messages are served.
pub type OpenStream = Arc<dyn Fn() -> BoxFuture<'static, Result<OpenedStream>> + Send + Sync>;

/// A stream to another process of this machine.
pub struct OpenedStream {
    /// The stream.
    pub stream: UnixStream,
    /// Dropped when the connection is closed, which ends it.
    pub machine: Option<Arc<dyn LocalMachine>>,
}

/// A machine that was started for a stream. Dropping it ends it.
pub trait LocalMachine: Send + Sync {
    /// Writes its state to files of this computer. It has no connection, and goes on.
    fn save(&self) -> BoxFuture<'_, Result<Box<dyn SavedMachine>>>;

    /// Waits until it connects again.
    fn reconnect(&self) -> BoxFuture<'_, Result<UnixStream>>;
}

/// The state of a machine in files, which are removed when this is dropped.
pub trait SavedMachine: std::fmt::Debug + Send + Sync {
    /// Returns the size of the files.
    fn bytes(&self) -> u64;

    /// Restores a machine, with its name or with one of its own.
    fn open(&self, renamed: bool) -> BoxFuture<'_, Result<OpenedStream>>;
}

impl std::fmt::Debug for OpenedStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut opened = formatter.debug_struct("OpenedStream");
        opened.field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl From<UnixStream> for OpenedStream {
    fn from(stream: UnixStream) -> Self {
        Self {
            stream,
            machine: None,
        }
    }
}

/// Sandboxes of another process of this machine.
#[derive(Clone)]
pub struct LocalConfig {
    /// Name of the other process in messages.
    pub name: String,
    /// Name of the backend that the other process has.
    pub backend: &'static str,
    /// Wall around its sandboxes in addition to this machine's kernel.
    pub wall: Option<String>,
    /// Features that its sandboxes lack compared with those of the process backend.
    pub lacks: &'static [Lack],
    /// Whether its sandboxes cannot see this machine's layers, which are then sent to it.
    pub sends_layers: bool,
    /// Whether its machines can be saved.
    pub suspends: bool,
    /// Opens a stream to the other process.
    pub open: OpenStream,
}

impl std::fmt::Debug for LocalConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LocalConfig")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl LocalConfig {
    pub(super) async fn connect(&self) -> Result<(Link, Hello)> {
        self.over((self.open)().await?).await
    }

    /// Connects over a stream.
    pub(super) async fn over(&self, opened: OpenedStream) -> Result<(Link, Hello)> {
        let transport = framed(opened.stream);
        let (link, hello) = Link::start(transport, Pulse::default(), Some(self.name.clone())).await?;
        Ok((link.keeping_machine(opened.machine), hello))
    }
}

/// Returns the messages of a stream, each with its length before it. A peer that is gone with
/// messages that it did not read resets the stream, which is its end as well; a message for a peer
/// that is gone fails with the same words.
pub fn framed<S>(stream: S) -> impl MuxTransport<io::Error>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(MAX_MESSAGE)
        .new_codec();
    let is_reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
    let messages = Framed::new(stream, codec)
        .map_ok(BytesMut::freeze)
        .take_while(move |message| future::ready(!message.as_ref().is_err_and(is_reset)));
    SinkExt::<Bytes>::sink_map_err(messages, |error: io::Error| match error.kind() {
        kind @ io::ErrorKind::BrokenPipe => io::Error::new(kind, CLOSED),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn messages_arrive_whole_and_an_oversized_one_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (Box::pin(framed(ours)), Box::pin(framed(theirs)));
        for message in ["", "a", "bcd"] {
            ours.send(Bytes::from(message)).await.unwrap();
            assert_eq!(theirs.next().await.unwrap().unwrap(), message);
        }
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let announced = u32::try_from(MAX_MESSAGE + 1).unwrap();
        ours.write_all(&announced.to_be_bytes()).await.unwrap();
        let error = Box::pin(framed(theirs)).next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_has_ended_the_stream_whatever_it_had_not_read() {
        for unread in [false, true] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let mut ours = Box::pin(framed(ours));
            if unread {
                ours.send(Bytes::from("a")).await.unwrap();
            }
            drop(theirs);
            let error = ours.send(Bytes::from("b")).await.unwrap_err();
            assert_eq!(error.to_string(), CLOSED, "{unread}");
            assert!(ours.next().await.is_none(), "{unread}");
        }
    }
}
