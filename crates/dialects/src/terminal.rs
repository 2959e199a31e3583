//! WebSockets of terminals, as dialects open them.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use cellblock_interpreter::session::processes::TerminalSize;
use cellblock_interpreter::session::processes::terminal::TerminalFrame;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, future};

/// Size of a terminal until the client says otherwise.
pub(crate) const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};
/// Maximum time for a client to take a message.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// Returns a WebSocket with the messages of a terminal.
pub(crate) fn framed(
    socket: WebSocket,
) -> impl Stream<Item = TerminalFrame> + Sink<TerminalFrame, Error = axum::Error> + Unpin {
    let read = socket.map(|message| match message {
        Ok(Message::Binary(bytes)) => TerminalFrame::Binary(bytes),
        Ok(Message::Text(text)) => TerminalFrame::Text(text.to_string()),
        Ok(Message::Ping(_) | Message::Pong(_)) => TerminalFrame::Ping,
        Ok(Message::Close(_)) | Err(_) => TerminalFrame::Close(None),
    });
    read.with(|frame| {
        future::ok(match frame {
            TerminalFrame::Binary(bytes) => Message::Binary(bytes),
            TerminalFrame::Text(text) => Message::text(text),
            TerminalFrame::Ping => Message::Ping(Bytes::new()),
            TerminalFrame::Close(end) => Message::Close(end.map(|(code, reason)| CloseFrame {
                code,
                reason: reason.into(),
            })),
        })
    })
}
