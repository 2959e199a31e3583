//! `POST /v1/responses`: a response at once, its events as they come, or one that goes on in the background.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::wire::{
    ApiError, Dialect, ErrorKind, EventKind, Ids, ResponseRequest, ResponseStatus, StreamEvent,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::keep;
use super::prepare::prepare;
use super::run::{EventReceiver, Job, WAITING};
use super::stream::{self, Trimmings};
use crate::json::read;
use crate::problem::Problem;
use crate::state::responses::{Log, RunningResponse};
use crate::state::{Caller, Gateway};

/// Requests events in addition to those that every client gets.
const EVENTS: &str = "x-cellblock-events";

pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer, Problem> {
    let body = read(body)?;
    let request = ResponseRequest::parse(&body, &mut Ids::random())?;
    let dialect = dialect(&gateway, &headers);
    let mut job = prepare(&gateway, &caller, request, dialect, None).await?;
    job.turn = job.turn.asking();
    let (stream, background) = (job.request.stream, job.request.background);
    if background {
        let mut response = job.response.clone();
        let log = go_on(job).await?;
        if stream {
            return Ok(stream::follow(&gateway, log, 0));
        }
        response.status = ResponseStatus::Queued;
        return Ok(axum::Json(response).into_response());
    }
    let events = play(job).await?;
    if stream {
        return Ok(stream::live(
            &gateway,
            events,
            |event| event.frame(),
            Trimmings::OPENAI,
        ));
    }
    Ok(whole(events).await?)
}

/// Plays a turn, and gives its events as they come. A client that drops them is gone.
pub(super) async fn play(job: Job) -> Result<mpsc::Receiver<StreamEvent>, ApiError> {
    if job.request.store {
        keep::begun(&job.gateway, &job.owner, &job.request, &job.response).await?;
    }
    let (sender, events) = mpsc::channel(WAITING);
    // A task of its own: when the client leaves, the turn still comes to an end that is kept.
    let tasks = job.gateway.tasks.clone();
    tasks.spawn(
        job.play(EventReceiver::Client(sender), CancellationToken::new())
            .in_current_span(),
    );
    Ok(events)
}

/// Returns the dialect of events for the client that sent these headers.
pub(super) fn dialect(gateway: &Gateway, headers: &HeaderMap) -> Dialect {
    let asked = headers.get_all(EVENTS).iter();
    let asked = asked.filter_map(|value| value.to_str().ok());
    asked.fold(gateway.options.responses.dialect, Dialect::and)
}

/// Begins a response that goes on without its client.
async fn go_on(job: Job) -> Result<Arc<Log>, ApiError> {
    let gateway = job.gateway.clone();
    let id = job.response.id.clone();
    let running = RunningResponse {
        owner: job.owner.clone(),
        log: Arc::new(Log::new()),
        cancel: CancellationToken::new(),
    };
    gateway.responses.add(&id, running.clone())?;
    if let Err(error) = keep::begun(&gateway, &job.owner, &job.request, &job.response).await {
        gateway.responses.remove(&id);
        return Err(error);
    }
    let (log, cancel) = (Arc::clone(&running.log), running.cancel);
    let tasks = gateway.tasks.clone();
    let listed = BackgroundGuard {
        gateway,
        id,
        log: Arc::clone(&log),
    };
    let run = async move {
        Box::pin(job.play(EventReceiver::Log(log), cancel)).await;
        drop(listed);
    };
    tasks.spawn(run.in_current_span());
    Ok(running.log)
}

/// A background response among those that run. Its followers are let go when this is dropped,
/// whatever happens.
struct BackgroundGuard {
    gateway: Gateway,
    id: String,
    log: Arc<Log>,
}

impl Drop for BackgroundGuard {
    fn drop(&mut self) {
        self.log.end();
        self.gateway.responses.remove(&self.id);
    }
}

/// The response, when it is whole. One that failed before anything came of it is an error.
async fn whole(mut events: mpsc::Receiver<StreamEvent>) -> Result<Answer, ApiError> {
    let mut error = None;
    while let Some(event) = events.recv().await {
        match event.kind {
            EventKind::Error(why) => error = Some(why.0),
            kind => {
                if let Some(response) = kind.last() {
                    return match error {
                        Some(error) if response.output.is_empty() => Err(error),
                        _ => Ok(axum::Json(response).into_response()),
                    };
                }
            }
        }
    }
    Err(ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway is stopping".to_owned(),
        param: None,
    })
}
