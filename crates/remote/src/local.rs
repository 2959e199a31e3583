//! Connecting to the sandboxes of another process of this machine, over streams that the caller opens.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::link::Link;
use super::mux::{MuxTransport, Pulse};
use super::wire::{Hello, MAX_MESSAGE};
use cellblock_sandbox::Result;
use cellblock_sandbox::backend::{BoxFuture, Lack};

/// Opens a stream on whose other end [`framed`] messages are served.
pub type OpenStream = Arc<dyn Fn() -> BoxFuture<'static, Result<OpenedStream>> + Send + Sync>;

/// A stream to another process of this machine.
pub struct OpenedStream {
    /// The stream.
    pub stream: UnixStream,
    /// Dropped when the connection is closed: ends what was started for it, such as a machine.
    pub keep: Option<Box<dyn Send + Sync>>,
}

impl std::fmt::Debug for OpenedStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut opened = formatter.debug_struct("OpenedStream");
        opened.field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl From<UnixStream> for OpenedStream {
    fn from(stream: UnixStream) -> Self {
        Self { stream, keep: None }
    }
}

/// Sandboxes of another process of this machine.
#[derive(Clone)]
pub struct LocalConfig {
    /// Name of the other process in messages.
    pub name: String,
    /// Name of the backend that the other process has.
    pub backend: &'static str,
    /// What stands around its sandboxes beside this machine's kernel.
    pub wall: Option<String>,
    /// What its sandboxes lack beside those of the process backend.
    pub lacks: &'static [Lack],
    /// Whether its sandboxes cannot see this machine's layers, which are then sent to it.
    pub sends_layers: bool,
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
        let OpenedStream { stream, keep } = (self.open)().await?;
        let (link, hello) = Link::start(framed(stream), Pulse::default(), Some(self.name.clone())).await?;
        Ok((link.keeping(keep), hello))
    }
}

/// Returns the messages of a stream, each with its length before it.
pub fn framed<S>(stream: S) -> impl MuxTransport<io::Error>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(MAX_MESSAGE)
        .new_codec();
    Framed::new(stream, codec).map_ok(BytesMut::freeze)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{SinkExt, StreamExt};
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
}
