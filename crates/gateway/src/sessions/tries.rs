//! `/v1/sessions/{id}/try`: cells whose effects count only once they are kept.

use axum::extract::{Path, State};
use cellblock_interpreter::Error;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::session::checkpoints::CheckpointError;
use cellblock_interpreter::session::checkpoints::tries::{DecidedTry, TryChanges, TryResult};
use serde::{Deserialize, Serialize};

use super::cells::CellAnswer;
use super::run::{CellRequest, attended, not_under_contract, settle};
use crate::json::Json;
use crate::problem::Problem;
use crate::state::sessions::lock;
use crate::state::{Caller, Gateway};

/// A cell to try.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TryRequest {
    /// The code. The value of a trailing expression is displayed.
    code: Option<String>,
    /// The language of the code: `python`, `bash`, `javascript` or `r`.
    #[schema(value_type = String, default = "python")]
    language: Language,
    /// Timeout in seconds.
    timeout: Option<f64>,
    /// Additional packages, as requirement strings.
    requirements: Vec<String>,
    /// Producer of the variables that it makes; their origins name it.
    producer: Option<String>,
}

impl From<TryRequest> for CellRequest {
    fn from(request: TryRequest) -> Self {
        let TryRequest {
            code,
            language,
            timeout,
            requirements,
            producer,
        } = request;
        Self {
            code,
            language,
            timeout,
            requirements,
            producer,
            ..Self::default()
        }
    }
}

/// A cell that was tried: the cell as from `POST /v1/sessions/{id}/cells`, and what it changed.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TryAnswer {
    #[serde(flatten)]
    cell: CellAnswer,
    /// Differences from the state before it.
    changes: TryChanges,
    /// Whether it can be kept or discarded; otherwise the cell has ended its sandbox, with everything in it.
    undecided: bool,
}

/// Runs a cell whose effects count only once it is kept. Until it is kept or discarded, other
/// requests for the session are rejected. Calls of functions of connectors that change something
/// are rejected.
#[utoipa::path(
    post, operation_id = "try_cell", path = "/v1/sessions/{id}/try", tag = "sessions",
    params(("id" = String, Path)),
    request_body = TryRequest,
    responses(
        (status = 200, description = "The result, and what the cell changed", body = crate::openapi::Try),
        (status = 400, description = "A field is invalid, or the backend has no checkpoints",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
        (
            status = 409,
            description = "The session has an undecided try, or something that could not be brought \
                           back, such as threads; nothing has changed",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn run(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<TryRequest>,
) -> Result<Json<TryAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    not_under_contract(&held)?;
    let cell = CellRequest::from(request).cell(&gateway)?;
    let turn = held.turn().await?;
    let work = {
        let gateway = gateway.clone();
        async move {
            let code = cell.code.clone();
            let permit = gateway.quotas.of_session(&held.id).cell(&held.owner).await?;
            let TryResult {
                execution,
                changes,
                undecided,
            } = held.session.try_run(cell).await?;
            let (cell, stored) = settle(&gateway, &held, permit, code, execution, None).await?;
            // It is a cell of the session once it is decided.
            *lock(&held.tried) = undecided.then_some(stored);
            Ok(TryAnswer {
                cell,
                changes,
                undecided,
            })
        }
    };
    Ok(Json(attended(&gateway, turn, work).await?))
}

/// Keeps the undecided try: its variables and files are those of the session.
#[utoipa::path(
    post, operation_id = "keep_try", path = "/v1/sessions/{id}/try/keep", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "It was kept", body = crate::openapi::DecidedTry),
        (status = 404, description = "The caller has no such session, or the session no undecided try",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn keep(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DecidedTry>, Problem> {
    decide(&gateway, &caller, &id, true).await
}

/// Discards the undecided try: variables and files are as before it, and what its cell started is ended.
#[utoipa::path(
    post, operation_id = "discard_try", path = "/v1/sessions/{id}/try/discard", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The session is as before the try", body = crate::openapi::DecidedTry),
        (status = 404, description = "The caller has no such session, or the session no undecided try",
            body = crate::openapi::Error),
        (
            status = 409,
            description = "Code of the try has ended the process that held the state before it; the try \
                           can be kept",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn discard(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DecidedTry>, Problem> {
    decide(&gateway, &caller, &id, false).await
}

async fn decide(
    gateway: &Gateway,
    caller: &Caller,
    id: &str,
    keep: bool,
) -> Result<Json<DecidedTry>, Problem> {
    let held = gateway.sessions.find(caller, id)?;
    let turn = held.turn().await?;
    let work = async move {
        let decided = held.session.decide_try(keep).await;
        // The sandbox may have ended, and the try with it.
        if matches!(decided, Err(Error::Checkpoint(CheckpointError::NoTry))) {
            lock(&held.tried).take();
        }
        let decided = decided?;
        let tried = lock(&held.tried).take();
        if let Some(cell) = tried.filter(|tried| tried.cell == decided.cell) {
            let mut cells = lock(&held.cells);
            if decided.kept {
                cells.push(cell);
            } else {
                cells.push_discarded(cell);
            }
        }
        Ok(decided)
    };
    Ok(Json(attended(gateway, turn, work).await?))
}
