//! `POST /v1/chat/completions`: a chat request as one of the Responses API, and its events as a
//! completion. Nothing is stored.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::wire::{ChatRequest, Completion, Dialect, Ids, Pieces};

use super::create::play;
use super::prepare::prepare;
use super::stream::{self, Trimmings};
use crate::containers;
use crate::json::read;
use crate::now;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer, Problem> {
    let body = read(body)?;
    let mut ids = Ids::random();
    let chat = ChatRequest::parse(&body, &mut ids, gateway.options.chat_interpreter)?;
    let completion = Completion {
        id: ids.mint("chatcmpl").replacen('_', "-", 1),
        created: now(),
        model: chat.request.model.clone(),
        include_usage: chat.include_usage,
    };
    let linking = gateway.clone();
    let address = move |container: &str, file: &str| containers::address(&linking, container, file);
    let mut pieces = Pieces::new(chat.wants_json(), Box::new(address));
    let stream = chat.request.stream;
    let job = prepare(&gateway, &caller, chat.request, Dialect::default(), None).await?;
    let mut events = play(job).await?;
    if stream {
        let frames = move |event: cellblock_agent::wire::StreamEvent| {
            let pieces = pieces.take(event.kind).into_iter();
            pieces.map(|piece| completion.frames(piece)).collect()
        };
        return Ok(stream::live(&gateway, events, frames, Trimmings::OPENAI));
    }
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        told.extend(pieces.take(event.kind));
    }
    Ok(axum::Json(completion.whole(told)?).into_response())
}

/// Returns the error for a response that is not stored, and so cannot be read, changed or deleted.
pub(super) async fn stored() -> Problem {
    let message = "chat completions are not stored; use `/v1/responses`, which stores responses";
    Problem::missing("chat_completions_not_stored", message)
}
