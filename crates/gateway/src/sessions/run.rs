//! `POST /v1/sessions/{id}/cells`: runs a cell, and answers at its end or as it goes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::execution::Event;
use cellblock_interpreter::hosting::Exclusive;
use cellblock_interpreter::lineage;
use cellblock_interpreter::report::CellReport;
use cellblock_interpreter::toolset::python;
use cellblock_interpreter::{Cell, Execution};
use serde::Deserialize;

use super::body;
use super::cells::CellAnswer;
use super::stream::{self, Teller};
use super::streams::{self, StreamName};
use crate::artifacts;
use crate::problem::Problem;
use crate::quotas::CellPermit;
use crate::state::sessions::{HostedSession, RestSession, StoredCell, lock};
use crate::state::{Caller, Gateway};

/// A cell to run.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CellRequest {
    /// The code. The value of a trailing expression is displayed.
    pub(super) code: Option<String>,
    /// The language of the code: `python`, `bash`, `javascript` or `r`. A session keeps the state of each.
    #[schema(value_type = String, default = "python")]
    pub(super) language: Language,
    /// Timeout in seconds.
    pub(super) timeout: Option<f64>,
    /// Additional packages, as requirement strings.
    pub(super) requirements: Vec<String>,
    /// Producer of the variables that it makes, such as the path of a notebook; their origins name it.
    pub(super) producer: Option<String>,
    /// Check the code without running it. The result has the form of a run that was rejected or
    /// completed; it is not stored, and its number is 0.
    pub(super) dry_run: bool,
    /// Stream the result as events; the same as `Accept: text/event-stream`.
    pub(super) stream: bool,
    /// Name for the stream of events, 1 to 64 letters, digits, `-` or `_`, which your client makes
    /// up for each cell. The cell then goes on for 60 s without its client, which reads the rest of
    /// the events with `GET /v1/sessions/{id}/streams/{stream}`.
    #[schema(value_type = Option<String>)]
    pub(super) stream_id: Option<StreamName>,
}

impl CellRequest {
    /// Returns the cell, within the server's limits.
    pub(super) fn cell(self, gateway: &Gateway) -> Result<Cell, Problem> {
        let max_timeout = gateway.options.max_cell_timeout;
        let cell = python::cell(self.code, self.timeout, self.requirements, max_timeout)?;
        let cell = match self.producer {
            Some(producer) => cell.produced_by(lineage::producer(producer)?),
            None => cell,
        };
        Ok(Cell {
            dry_run: self.dry_run,
            language: self.language,
            ..cell
        })
    }
}

/// Runs a cell. If code raises, times out or is rejected, the status is 200 and `outcome` says so.
/// If the client disconnects, its cell is interrupted, unless it has a `stream_id`.
#[utoipa::path(
    post, operation_id = "run_cell", path = "/v1/sessions/{id}/cells", tag = "sessions",
    params(("id" = String, Path)),
    request_body = CellRequest,
    responses(
        (status = 200, description = "The result; or, as `text/event-stream`, the events of `CellEvent`",
            content(
            (crate::openapi::Cell = "application/json"),
            (crate::openapi::CellEvent = "text/event-stream"),
        )),
        (status = 400, description = "A field is invalid, or packages are unavailable",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
        (
            status = 409,
            description = "The session has a stream with this `stream_id`: the cell was sent before",
            body = crate::openapi::Error
        ),
        (status = 429, description = "Too many requests are waiting for the session",
            body = crate::openapi::Error),
        (status = 502, description = "The sandbox failed", body = crate::openapi::Error),
        (status = 503, description = "No sandbox became available in time; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn run(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let request: CellRequest = body::json(&headers, &body)?;
    not_under_contract(&held)?;
    let streams = request.stream || request.stream_id.is_some() || accepts_events(&headers);
    let name = request.stream_id.clone();
    let cell = request.cell(&gateway)?;
    let turn = held.turn().await?;
    if !streams {
        let json = attended(&gateway, turn, {
            let (gateway, held) = (gateway.clone(), Arc::clone(&held));
            async move { perform(&gateway, &held, cell, None).await }
        })
        .await?;
        return Ok(([(CONTENT_TYPE, "application/json")], json).into_response());
    }
    let reader = streams::run(&gateway, held, turn, cell, name)?;
    Ok(stream::told(reader).into_response())
}

/// Rejects code for a session that runs it under contracts only.
pub(super) fn not_under_contract(held: &HostedSession) -> Result<(), Problem> {
    if held.toolset.on_results {
        return Err(ApiError::invalid(
            "id",
            "wrong_toolset",
            "a derivation runs code under contracts only; call its tool `code_interpreter`",
        )
        .into());
    }
    Ok(())
}

/// Runs a cell, and answers what came of it as JSON.
pub(super) async fn perform(
    gateway: &Gateway,
    held: &HostedSession,
    cell: Cell,
    teller: Option<&Teller>,
) -> Result<String, Problem> {
    let code = cell.code.clone();
    let permit = gateway.quotas.of_session(&held.id).cell(&held.owner).await?;
    let execution = match teller {
        None => held.session.execute(cell).await?,
        Some(teller) => watched(gateway, held, cell, teller).await?,
    };
    finish(gateway, held, permit, code, execution, teller).await
}

/// Lets the caller of a cell read what it made, keeps what came of it, and answers that as JSON.
pub(super) async fn finish(
    gateway: &Gateway,
    held: &HostedSession,
    permit: CellPermit,
    code: String,
    execution: Execution,
    teller: Option<&Teller>,
) -> Result<String, Problem> {
    let (_, cell) = settle(gateway, held, permit, code, execution, teller).await?;
    let json = cell.json.clone();
    // A dry run is no cell of the session.
    if cell.cell > 0 {
        lock(&held.cells).push(cell);
    }
    Ok(json)
}

/// Lets the caller of a cell read what it made. Returns the answer, and the cell as the session can keep it.
pub(super) async fn settle(
    gateway: &Gateway,
    held: &HostedSession,
    permit: CellPermit,
    code: String,
    execution: Execution,
    teller: Option<&Teller>,
) -> Result<(CellAnswer, StoredCell), Problem> {
    permit.done(execution.duration);
    let number = execution.cell;
    let mut report = CellReport::new(execution, |_| None);
    artifacts::grant_report(&gateway.records, &held.owner, &mut report).await;
    if let Some(teller) = teller {
        for file in &report.files {
            teller.file(file).await;
        }
    }
    let parent = lock(&held.cells).head();
    let answer = CellAnswer {
        object: "session.cell",
        session: held.id.clone(),
        cell: number,
        parent,
        discarded: false,
        code,
        report,
    };
    let json =
        serde_json::to_string(&answer).map_err(|error| Problem::internal("write the answer", &error))?;
    let cell = StoredCell {
        cell: number,
        json,
        parent,
    };
    Ok((answer, cell))
}

async fn watched(
    gateway: &Gateway,
    held: &HostedSession,
    cell: Cell,
    teller: &Teller,
) -> Result<Execution, Problem> {
    let mut running = held.session.start_cell(cell).await?;
    while let Some(event) = running.events.recv().await {
        let shown = match &event {
            Event::Output(output) => Some(output),
            Event::Display(display) => Some(&display.output),
            Event::Stdout(_) | Event::Stderr(_) | Event::Clear { .. } => None,
        };
        if let Some(output) = shown {
            let made = output.artifacts();
            let made = made.iter().map(|artifact| artifact.sha256.to_string());
            // If this fails, the cell's report says so.
            let _ = artifacts::grant_made(&gateway.records, &held.owner, made.collect()).await;
        }
        teller.event(event).await;
    }
    Ok(running.finish().await?)
}

/// Does something with a session that a client waits for: when it goes away, what runs is stopped,
/// and the session is free again when it has.
pub(super) async fn attended<T: Send + 'static>(
    gateway: &Gateway,
    turn: Exclusive<RestSession>,
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let waited = crate::attended::attended(gateway, "finish the request", |gone| async move {
        let done = turn.until(gone.cancelled(), work).await;
        drop(turn);
        Some(done)
    });
    waited.await
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/event-stream"))
}
