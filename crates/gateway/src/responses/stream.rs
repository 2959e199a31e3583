//! Events as a `text/event-stream`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::wire::{DONE, StreamEvent, anthropic};
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::state::Gateway;
use crate::state::responses::{Log, LogPosition};

/// Parts of a stream in addition to its events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimmings {
    /// Text that clients skip, and that keeps proxies from closing the connection.
    still_here: &'static str,
    /// The end.
    done: &'static str,
}

impl Trimmings {
    /// Those of OpenAI's APIs.
    pub(super) const OPENAI: Self = Self {
        still_here: ": keep-alive\n\n",
        done: DONE,
    };
    /// Those of Anthropic's Messages API.
    pub(super) const MESSAGES: Self = Self {
        still_here: anthropic::PING,
        done: "",
    };
}

/// Tells proxies such as nginx to pass on each frame at once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The events of a turn, whose client is gone when this is dropped. `frame` writes each; an empty
/// frame is not sent.
pub(super) fn live(
    gateway: &Gateway,
    events: mpsc::Receiver<StreamEvent>,
    frame: impl FnMut(StreamEvent) -> String + Send + 'static,
    trimmings: Trimmings,
) -> Answer {
    let keep_alive = gateway.options.responses.keep_alive;
    let frames = stream::unfold(Some((events, frame)), move |listening| async move {
        let (mut events, mut frame) = listening?;
        Some(match timeout(keep_alive, events.recv()).await {
            Ok(Some(event)) => (Bytes::from(frame(event)), Some((events, frame))),
            Ok(None) => (Bytes::from_static(trimmings.done.as_bytes()), None),
            Err(_) => (
                Bytes::from_static(trimmings.still_here.as_bytes()),
                Some((events, frame)),
            ),
        })
    });
    answer(frames.filter(|frame| std::future::ready(!frame.is_empty())))
}

/// The events of a log from a number on.
pub(super) fn follow(gateway: &Gateway, log: Arc<Log>, from: u64) -> Answer {
    answer(frames(log, from, gateway.options.responses.keep_alive))
}

fn frames(log: Arc<Log>, from: u64, keep_alive: Duration) -> impl Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Some((log, from)), move |place| async move {
        let (log, number) = place?;
        Some(match timeout(keep_alive, log.at(number)).await {
            Ok(LogPosition::Frame(frame)) => (Bytes::from(frame.to_string()), Some((log, number + 1))),
            // A client that reads so slowly has to ask again; what it missed is in the response.
            Ok(LogPosition::Gone(_) | LogPosition::End) => (Bytes::from_static(DONE.as_bytes()), None),
            Err(_) => (
                Bytes::from_static(Trimmings::OPENAI.still_here.as_bytes()),
                Some((log, number)),
            ),
        })
    })
}

fn answer(frames: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (BUFFERING, "no"),
    ];
    let body = Body::from_stream(frames.map(Ok::<_, Infallible>));
    (headers, body).into_response()
}
