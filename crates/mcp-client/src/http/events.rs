//! Events of a server, of which the library sees only the necessary parts.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use super::body;
use crate::failure::Failure;
use crate::wire::Wire;

/// Reads the events of a response. If they answer a request, a problem with them fails it.
pub(super) fn read(
    response: Response,
    request: Option<RequestId>,
    wire: Arc<Wire>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = body::stream(response, Arc::clone(&wire));
    let events = SseStream::from_bytes_stream(bytes);
    events
        .map(move |event| one(event, request.as_ref(), &wire))
        .boxed()
}

/// Converts an event for the library.
fn one(event: Result<Sse, SseError>, request: Option<&RequestId>, wire: &Wire) -> Result<Sse, SseError> {
    let mut event = match event {
        Ok(event) => event,
        Err(SseError::Body(error)) => match error.downcast::<Failure>() {
            Ok(failure) if matches!(*failure, Failure::TooLarge { .. }) => {
                return failed(Sse::default(), *failure, request, wire);
            }
            Ok(failure) => return Err(SseError::Body(failure)),
            Err(error) => return Err(SseError::Body(error)),
        },
        Err(error) => {
            let failure = Failure::malformed(format!("its stream of events cannot be read: {error}"));
            return failed(Sse::default(), failure, request, wire);
        }
    };
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let Some(text) = event
        .data
        .take()
        .filter(|text| is_message && !text.trim().is_empty())
    else {
        return Ok(event);
    };
    match wire.read(&text) {
        Ok(Some(message)) => {
            event.data = serde_json::to_string(&message).ok();
            Ok(event)
        }
        // Its id may still matter: the stream can be resumed after it.
        Ok(None) => Ok(event),
        Err(failure) => failed(event, failure, request, wire),
    }
}

/// Ends a request whose response is useless.
fn failed(
    mut event: Sse,
    failure: Failure,
    request: Option<&RequestId>,
    wire: &Wire,
) -> Result<Sse, SseError> {
    if let Some(message) = request.and_then(|id| wire.fail(id, &failure)) {
        event.data = serde_json::to_string(&message).ok();
        return Ok(event);
    }
    tracing::warn!(error = %failure, "an event of a tool server was dropped");
    Err(SseError::Body(Box::new(failure)))
}
