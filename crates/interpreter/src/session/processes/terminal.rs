//! Terminals of processes over the messages of a client, such as those of a WebSocket. One pump
//! serves every protocol; a codec has the forms and words of one.
//!
//! ```text
//! process ── output ──> ProcessReader ──> TerminalCodec ──> client    the sandbox keeps the rest
//! process <── input, resize, signal ───── TerminalCodec <── client
//! ```

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::{ProcessError, ProcessReader, ProcessReport, ProcessSignal, ProcessStream, TerminalSize};
use crate::error::{Error, Result};

/// Time between two pings, also while the process writes: a client that only reads answers them.
const BEAT: Duration = Duration::from_secs(20);

/// A message, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalFrame {
    /// Bytes.
    Binary(Bytes),
    /// Text.
    Text(String),
    /// A ping, or the answer to one.
    Ping,
    /// The end of the connection, with a code and a reason.
    Close(Option<(u16, String)>),
}

/// Meaning of a client's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// Bytes for standard input.
    Bytes(Bytes),
    /// Size of the terminal.
    Resize(TerminalSize),
    /// A signal for the process.
    Signal(ProcessSignal),
    /// Text to answer with.
    Answer(String),
    /// The end of the connection, with the last messages to the client.
    End(Vec<TerminalFrame>),
    /// No meaning.
    Nothing,
}

/// Forms and words of one protocol.
pub trait TerminalCodec {
    /// Maximum time for a client to send a message or to answer a ping.
    const SILENCE: Duration = Duration::MAX;

    /// Returns the binary message for a part of the output.
    fn output(&self, _stream: ProcessStream, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// Reads a binary message.
    fn binary(&self, bytes: Bytes) -> TerminalInput {
        TerminalInput::Bytes(bytes)
    }

    /// Reads a text message.
    fn text(&self, text: &str) -> TerminalInput;

    /// Returns the last messages after the end of the process, or after a failure to use it.
    fn end(&self, ended: Result<ProcessReport>) -> Vec<TerminalFrame>;

    /// Returns the last messages after a failure to write input, unless the connection continues, as it
    /// does after the end of the process: the rest of its output and its exit code are still to come.
    fn unwritten(&self, error: Error) -> Option<Vec<TerminalFrame>> {
        let is_closed = matches!(error, Error::Process(ProcessError::Closed { .. }));
        (!is_closed).then(|| self.end(Err(error)))
    }
}

/// Passes on both ways, after a greeting, until the process ends or the client goes. Returns the
/// last messages to the client. Output is read only as fast as the client takes it; `stall` limits
/// the time for one message.
pub async fn pump<C: TerminalCodec>(
    codec: &C,
    mut reader: ProcessReader,
    greeting: Vec<TerminalFrame>,
    stall: Duration,
    socket: &mut (impl Stream<Item = TerminalFrame> + Sink<TerminalFrame> + Unpin),
) -> Vec<TerminalFrame> {
    let (session, id) = (reader.session.clone(), reader.id.clone());
    let (to, mut from) = socket.split();
    let to = Mutex::new(to);
    // A client that does not read gets no last messages.
    let send = async |frame| match timeout(stall, to.lock().await.send(frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Vec::new()),
    };
    let show = async {
        for frame in greeting {
            send(frame).await?;
        }
        while let Some((stream, bytes)) = reader
            .next()
            .await
            .map_err(|error| codec.end(Err(logged(error))))?
        {
            send(TerminalFrame::Binary(codec.output(stream, bytes).into())).await?;
        }
        Ok(codec.end(reader.end().await.map_err(logged)))
    };
    let beat = async {
        loop {
            sleep(BEAT).await;
            send(TerminalFrame::Ping).await?;
        }
    };
    let listen = async {
        let processes = session.processes();
        loop {
            let input = match timeout(C::SILENCE, from.next()).await {
                Ok(Some(TerminalFrame::Binary(bytes))) => codec.binary(bytes),
                Ok(Some(TerminalFrame::Text(text))) => codec.text(&text),
                Ok(Some(TerminalFrame::Ping)) => TerminalInput::Nothing,
                Ok(Some(TerminalFrame::Close(_)) | None) | Err(_) => TerminalInput::End(Vec::new()),
            };
            match input {
                TerminalInput::Bytes(bytes) => {
                    if let Err(error) = processes.input(&id, &bytes, false).await
                        && let Some(end) = codec.unwritten(logged(error))
                    {
                        return Ok(end);
                    }
                }
                // A hidden window has no rows, pipes have no size, and an end shows in the output.
                TerminalInput::Resize(size) => drop(processes.resize(&id, size).await),
                TerminalInput::Signal(signal) => drop(processes.signal(&id, signal).await),
                TerminalInput::Answer(answer) => send(TerminalFrame::Text(answer)).await?,
                TerminalInput::End(end) => return Ok(end),
                TerminalInput::Nothing => {}
            }
        }
    };
    let end: std::result::Result<_, _> = tokio::select! {
        end = show => end,
        end = listen => end,
        end = beat => end,
    };
    end.unwrap_or_else(|end| end)
}

/// Sends the last messages of a connection and closes it, within a time.
pub async fn close(
    socket: &mut (impl Sink<TerminalFrame> + Unpin),
    last: Vec<TerminalFrame>,
    limit: Duration,
) {
    let _ = timeout(limit, async {
        for frame in last {
            // A connection that is broken cannot be closed either.
            let _ = socket.send(frame).await;
        }
        // Also the answer to the client's own close, which it waits for.
        let _ = socket.close().await;
    })
    .await;
}

/// Returns the last message of a connection, with a code and a reason.
pub fn closing(code: u16, reason: impl Into<String>) -> Vec<TerminalFrame> {
    vec![TerminalFrame::Close(Some((code, reason.into())))]
}

/// Logs a failure of the sandbox.
fn logged(error: Error) -> Error {
    if !matches!(error, Error::Process(_)) {
        tracing::warn!(error = &error as &dyn std::error::Error, "a terminal failed");
    }
    error
}
