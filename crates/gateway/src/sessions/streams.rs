//! `GET /v1/sessions/{id}/streams/{stream}`: the events of a cell for a client whose connection was lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::Cell;
use cellblock_interpreter::hosting::Exclusive;
use serde::{Deserialize, Serialize};

use super::run::perform;
use super::stream::{self, Teller};
use crate::problem::Problem;
use crate::state::sessions::{CellReader, CellStream, HostedSession, RestSession, lock};
use crate::state::{Caller, Gateway};

/// Maximum length of a name.
const MAX_NAME: usize = 64;
/// Time for which the events of a cell that has ended are kept.
const KEPT: Duration = Duration::from_mins(1);

/// Name that a client gives to the events of its cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct StreamName(String);

impl TryFrom<String> for StreamName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let allowed = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(allowed) {
            return Ok(Self(name));
        }
        Err(format!(
            "`stream_id` must have 1 to {MAX_NAME} letters, digits, `-` or `_`"
        ))
    }
}

/// Runs a cell whose events a client reads.
pub(super) fn run(
    gateway: &Gateway,
    held: Arc<HostedSession>,
    turn: Exclusive<RestSession>,
    cell: Cell,
    name: Option<StreamName>,
) -> Result<CellReader, Problem> {
    let name = name.map(|StreamName(name)| name);
    let named = name.is_some();
    if let Some(name) = &name
        && let Some(kept) = &*lock(&held.stream)
        && kept.is_named(name)
    {
        return Err(exists(name));
    }
    let (stream, reader) = CellStream::open(name);
    if named {
        *lock(&held.stream) = Some(Arc::clone(&stream));
    }
    let watched = gateway.clone();
    gateway.tasks.spawn(async move {
        let teller = Teller::new(&held, Arc::clone(&stream));
        let work = async {
            teller.started().await;
            match perform(&watched, &held, cell, Some(&teller)).await {
                Ok(json) => teller.done(&json).await,
                Err(problem) => teller.failed(&problem).await,
            }
        };
        turn.until(stream.abandoned(), work).await;
        drop(teller);
        drop(turn);
        if named {
            forget_later(&held, &stream);
        }
    });
    Ok(reader)
}

/// Forgets the events of a cell that has ended, some time after it.
fn forget_later(held: &Arc<HostedSession>, stream: &Arc<CellStream>) {
    let (held, stream) = (Arc::downgrade(held), Arc::downgrade(stream));
    tokio::spawn(async move {
        tokio::time::sleep(KEPT).await;
        if let (Some(held), Some(stream)) = (held.upgrade(), stream.upgrade()) {
            let mut kept = lock(&held.stream);
            if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &stream)) {
                *kept = None;
            }
        }
    });
}

/// Continues the events of a cell that was sent with this `stream_id`. A cell that nobody reads for
/// 60 s is interrupted. The events are kept for 60 s after its end, up to 8 MiB, and until the next
/// cell with a `stream_id`.
#[utoipa::path(
    get, operation_id = "resume_cell", path = "/v1/sessions/{id}/streams/{stream}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("stream" = String, Path, description = "`stream_id` of the cell"),
        (
            "starting_after" = Option<u64>,
            Query,
            description = "`sequence_number` of the last event that was read; without it, all \
                           events are sent"
        ),
    ),
    responses(
        (status = 200, description = "The events of `CellEvent`",
            content((crate::openapi::CellEvent = "text/event-stream"))),
        (
            status = 400,
            description = "The parameter is not a number, or the events after it are not kept anymore",
            body = crate::openapi::Error
        ),
        (status = 404, description = "The caller has no such session, or the session no such stream",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn resume(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Response, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let kept = lock(&held.stream).clone();
    let stream = kept.filter(|kept| kept.is_named(&name)).ok_or_else(|| {
        Problem::missing(
            "stream_not_found",
            "the session has no such stream, or its events are not kept anymore; the cells of the session \
             have the results",
        )
    })?;
    let next = match query.get("starting_after") {
        None => 0,
        Some(text) => {
            let number = text.parse::<u64>().map_err(|_| {
                let message = format!("`starting_after` is `{text}`; it must be a whole number");
                ApiError::invalid("starting_after", "invalid_value", message)
            })?;
            number.saturating_add(1)
        }
    };
    if let Some(first) = stream.is_missing(next) {
        let message = format!(
            "the events before {first} are not kept anymore; the cells of the session have the results"
        );
        return Err(ApiError::invalid("starting_after", "events_not_kept", message).into());
    }
    Ok(stream::told(stream.reader(next)).into_response())
}

fn exists(name: &str) -> Problem {
    let message = format!(
        "the session has a stream `{name}`: the cell was sent before; read its events, or \
         choose another `stream_id`"
    );
    let status = axum::http::StatusCode::CONFLICT;
    Problem::new(status, ErrorKind::InvalidRequestError, "stream_exists", message)
}
