//! `POST /v1/responses`: a response at once, or its events as they come.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response as Answer};
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use crate::containers;
use crate::server::{Caller, Gateway};
use crate::turn::Turn;
use crate::wire::{ApiError, Container, DONE, Ids, Request, Response, Tool};

/// Events that wait for a client; when they are so many, the model waits too.
const WAITING: usize = 64;

pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let mut ids = Ids::random();
    let request = Request::parse(&body, &mut ids)?;
    let provider = gateway.models.provider(&request.model)?;
    gateway.options.refuse_tools(&request.tools)?;
    let container = request.tools.iter().find_map(|tool| match tool {
        Tool::CodeInterpreter { container } => Some(container.clone()),
        Tool::Function(_) => None,
    });
    let auto = Container::Id(String::new());
    let runner = containers::runner(&gateway, &caller, container.as_ref().unwrap_or(&auto)).await?;
    let turn = Turn::new(provider, Arc::clone(&runner)).steps(gateway.options.max_steps);
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let response = Response::new(&request, ids.mint("resp"), created);
    let (sender, mut events) = mpsc::channel(WAITING);
    let stream = request.stream;
    let run = async move { turn.run(&request, response, Vec::new(), sender).await };
    if stream {
        gateway.tasks.spawn(run);
        let frames = stream::poll_fn(move |context| events.poll_recv(context)).map(|event| event.frame());
        let frames = frames.chain(stream::once(async { DONE.to_owned() }));
        let body = Body::from_stream(frames.map(Ok::<_, std::convert::Infallible>));
        let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        return Ok((headers, body).into_response());
    }
    let drain = async { while events.recv().await.is_some() {} };
    let (response, ()) = tokio::join!(run, drain);
    Ok(axum::Json(response).into_response())
}
