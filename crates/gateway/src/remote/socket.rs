//! Giving sandboxes to another Cellblock over a WebSocket that was upgraded.

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::remote::MAX_MESSAGE;
use cellblock_interpreter::remote::ServeTerms;
use futures_util::{SinkExt as _, TryStreamExt as _, future};

/// Upgrades a request whose caller may have a sandbox, with the limits that the protocol has.
///
/// `gone` completes when sandboxes are no longer given; what is open then ends at once.
pub fn upgrade<I>(
    upgrade: WebSocketUpgrade,
    interpreter: I,
    terms: ServeTerms,
    gone: impl Future<Output = ()> + Send + 'static,
) -> Response
where
    I: AsRef<Interpreter> + Send + Sync + 'static,
{
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(async move |socket| {
            tokio::select! {
                () = serve(socket, interpreter.as_ref(), terms) => {}
                () = gone => {}
            }
        })
}

/// Gives a sandbox, until the connection ends.
async fn serve(socket: WebSocket, interpreter: &Interpreter, terms: ServeTerms) {
    let messages = socket
        .try_filter_map(|message| {
            future::ok(match message {
                Message::Binary(bytes) => Some(bytes),
                // Nothing that is said in text is of the protocol, and an empty message is none.
                Message::Text(_) => Some(Bytes::new()),
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => None,
            })
        })
        .with(|bytes| future::ok(Message::Binary(bytes)));
    if let Err(error) = interpreter.serve(messages, terms).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "cut the connection of a remote client"
        );
    }
}
