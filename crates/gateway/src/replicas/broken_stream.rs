//! Server-sent events of another gateway that ends in the middle: they end with an event that says so.
//!
//! Events are passed on as wholes, so that a client never reads half of one.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Response};
use bytes::BytesMut;
use cellblock_agent::wire::{ApiError, DONE};
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::unreachable;
use crate::records::holders::HoldingGateway;

/// Maximum size of an event that is passed on as a whole.
const LARGEST: usize = 8 << 20;
/// Code of the error.
const LOST: &str = "gateway_lost";
/// Text before the number of an event. In texts, its quotes are escaped.
const NUMBER: &[u8] = b"\"sequence_number\":";
/// Maximum digits of a number.
const DIGITS: usize = 20;

/// The protocol of a stream, which decides how it reports an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventProtocol {
    /// Events of a cell.
    Cell,
    /// The Responses API.
    Responses,
    /// Chat completions.
    Chat,
    /// Anthropic's Messages API.
    Messages,
}

impl EventProtocol {
    /// Returns the protocol of events at a path; others have events that are not known here.
    fn at(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let is_below = |root: &str| path == root || path.starts_with(&format!("{root}/"));
        if is_below("/v1/sessions") && ["/cells", "/streams/", "/try"].iter().any(|it| path.contains(it)) {
            Some(Self::Cell)
        } else if is_below("/v1/responses") {
            Some(Self::Responses)
        } else if is_below("/v1/chat/completions") {
            Some(Self::Chat)
        } else if is_below("/v1/messages") {
            Some(Self::Messages)
        } else {
            None
        }
    }

    /// Description of the loss, and of whether the request can be repeated.
    const fn advice(self) -> &'static str {
        match self {
            Self::Cell => {
                "ended, or cannot be reached, before the cell was done: the cell may have run in part. If \
                 `GET` of the session answers 404, its variables and files are lost: create a new \
                 session, and run the cell again there unless repeating what it did outside of its \
                 sandbox would do harm"
            }
            Self::Responses | Self::Chat | Self::Messages => {
                "ended, or cannot be reached, before the response was whole: its code may have run in \
                 part, and variables of its container are lost. Send the request again unless repeating \
                 what its code did outside of its sandbox would do harm; a stored response is marked as \
                 failed within 30 seconds"
            }
        }
    }

    /// Writes the last event of a stream.
    fn frame(self, error: &ApiError, number: u64) -> String {
        let ApiError { message, code, .. } = error;
        match self {
            Self::Cell => {
                let error = json!(error)["error"].clone();
                let event = json!({"type": "cell.error", "error": error, "sequence_number": number});
                format!("event: cell.error\ndata: {event}\n\n")
            }
            Self::Responses => {
                let event = json!({"type": "error", "code": code, "message": message, "param": null,
                    "sequence_number": number});
                format!("event: error\ndata: {event}\n\n{DONE}")
            }
            Self::Chat => format!("data: {}\n\n{DONE}", json!(error)),
            Self::Messages => {
                let event = json!({"type": "error", "error": {"type": "api_error", "message": message}});
                format!("event: error\ndata: {event}\n\n")
            }
        }
    }
}

/// Returns the error of a turn of the Responses API whose gateway ended.
pub(super) fn lost_response(holder: &HoldingGateway) -> ApiError {
    unreachable(holder, LOST, EventProtocol::Responses.advice())
}

/// Events on their way.
struct EventRelay {
    body: axum::body::BodyDataStream,
    protocol: EventProtocol,
    holder: HoldingGateway,
    /// The beginning of an event that is not whole.
    pending: BytesMut,
    /// Whether the beginning of the pending event was passed on, because it is large.
    is_begun: bool,
    /// Number of the next event.
    next: u64,
}

/// Has the events in an answer to a request for a path end with an error if the gateway that sends
/// them ends before them.
pub(super) fn ended_in_words(answer: Response<Body>, path: &str, holder: &HoldingGateway) -> Response<Body> {
    let Some(protocol) = EventProtocol::at(path).filter(|_| has_events(answer.headers())) else {
        return answer;
    };
    let holder = holder.clone();
    answer.map(|body| {
        let passing = EventRelay {
            body: body.into_data_stream(),
            protocol,
            holder,
            pending: BytesMut::new(),
            is_begun: false,
            next: 0,
        };
        let pieces = stream::unfold(Some(passing), async |passing| passing?.next().await);
        Body::from_stream(pieces.map(Ok::<_, std::convert::Infallible>))
    })
}

fn has_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

impl EventRelay {
    /// Returns the next events, and what passes the ones after them.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        loop {
            match self.body.next().await {
                Some(Ok(piece)) => {
                    if let Some(events) = self.take(&piece) {
                        return Some((events, Some(self)));
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!(holder = self.holder.id, %error, "a forwarded stream broke");
                    return Some((self.last(), None));
                }
                None if self.pending.is_empty() => return None,
                None => return Some((self.pending.freeze(), None)),
            }
        }
    }

    /// Takes a piece of the stream; returns the events that are whole then.
    fn take(&mut self, piece: &[u8]) -> Option<Bytes> {
        self.pending.extend_from_slice(piece);
        let whole = self.pending.windows(2).rposition(|two| two == b"\n\n");
        let whole = match whole {
            Some(at) => {
                self.is_begun = false;
                at + 2
            }
            None if self.pending.len() > LARGEST => {
                self.is_begun = true;
                self.pending.len()
            }
            None => return None,
        };
        let events = self.pending.split_to(whole).freeze();
        if let Some(number) = last_number(&events) {
            self.next = number.saturating_add(1);
        }
        Some(events)
    }

    /// Returns the event that ends the stream.
    fn last(&self) -> Bytes {
        let error = unreachable(&self.holder, LOST, self.protocol.advice());
        let end = if self.is_begun { "\n\n" } else { "" };
        Bytes::from(end.to_owned() + &self.protocol.frame(&error, self.next))
    }
}

/// Returns the number of the last event.
fn last_number(events: &[u8]) -> Option<u64> {
    let at = events.windows(NUMBER.len()).rposition(|part| part == NUMBER)?;
    let digits = events[at + NUMBER.len()..].iter().take(DIGITS);
    let digits: Vec<u8> = digits.copied().take_while(u8::is_ascii_digit).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream that breaks, as a client does.
    async fn broken(path: &str, pieces: &[&'static str]) -> String {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|it| Ok(Bytes::from_static(it.as_bytes())))
            .collect();
        let broken = [Err(std::io::Error::other("cut"))];
        let body = Body::from_stream(stream::iter(pieces.into_iter().chain(broken)));
        let answer = Response::builder().header(CONTENT_TYPE, "text/event-stream");
        let holder = HoldingGateway {
            id: "a1".to_owned(),
            address: None,
        };
        let answer = ended_in_words(answer.body(body).unwrap(), path, &holder);
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX)
            .await
            .unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_broken_stream_ends_with_an_error_of_its_protocol_after_its_last_whole_event() {
        let events = [
            "event: a\ndata: {\"sequence_number\":6}\n",
            "\nevent: b\ndata: {\"seq",
        ];
        for (path, begins, says) in [
            (
                "/v1/sessions/s/cells",
                "event: cell.error\ndata: {\"type\":\"cell.error\",\"error\":{",
                "run the cell again there unless",
            ),
            (
                "/v1/sessions/s/streams/x?starting_after=1",
                "event: cell.error\ndata: ",
                "\"sequence_number\":7",
            ),
            (
                "/v1/responses",
                "event: error\ndata: {\"type\":\"error\",\"code\":\"gateway_lost\",",
                "Send the request again unless",
            ),
            ("/v1/chat/completions", "data: {\"error\":{", "data: [DONE]"),
            (
                "/v1/messages",
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",",
                "Send the request again unless",
            ),
        ] {
            let read = broken(path, &events).await;
            let first = "event: a\ndata: {\"sequence_number\":6}\n\n";
            let rest = read
                .strip_prefix(first)
                .unwrap_or_else(|| panic!("{path}: {read}"));
            assert!(rest.starts_with(begins) && rest.contains(says), "{path}: {rest}");
            assert!(
                rest.ends_with("\n\n") && rest.contains("the gateway `a1`"),
                "{path}: {rest}"
            );
            // Anthropic's errors have a type instead of a code.
            assert_eq!(rest.contains(LOST), path != "/v1/messages", "{path}: {rest}");
        }
    }

    #[test]
    fn the_number_of_the_last_event_is_found_beside_texts_that_look_like_it() {
        let text = br#"{"text":"\"sequence_number\":9","sequence_number":12}"#;
        assert_eq!(last_number(text), Some(12));
        assert_eq!(last_number(br#"{"text":"\"sequence_number\":9"}"#), None);
    }
}
