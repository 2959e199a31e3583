//! `/v1/runs`: records of what was run, and replays of it.
//!
//! ```text
//! sessions ──RunRecord──> RunLog (bounded queue) ──> records ──> list, read, export
//!                                                        └─────> replay: the cells in a fresh sandbox, compared by hash
//! ```

mod answer;
mod chain;
mod export;
mod operate;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use cellblock_interpreter::replay::{Replay, ReplayReport, ReplayTerms};
use serde_json::{Value, json};

use crate::attended::attended;
use crate::conversions::convert;
use crate::json::Json;
use crate::listing::{self, QueryParameters};
use crate::problem::Problem;
use crate::records::{RunRow, RunsOf};
use crate::state::{Caller, Gateway};

pub use answer::{ReplayAnswer, RunAnswer};
pub use chain::Chain;
pub use export::RunExport;
pub use operate::{OwnedRun, RecordedRuns};

/// Maximum and default number of runs in one answer.
const PAGE: usize = 100;
const USUAL: usize = 20;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/runs", get(list))
        .route("/v1/runs/{id}", get(read))
        .route("/v1/runs/{id}/export", get(export))
        .route("/v1/runs/{id}/replay", post(again))
}

/// Lists the caller's runs.
#[utoipa::path(
    get, operation_id = "list_runs", path = "/v1/runs", tag = "runs",
    params(
        ("session" = Option<String>, Query,
            description = "ID of the session or container whose runs are listed"),
        ("after" = Option<String>, Query, description = "ID of the run after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Maximum number of runs, 1 to 100; by default 20"),
        ("order" = Option<String>, Query, description = "`desc` (the newest first, the default) or `asc`"),
    ),
    responses(
        (status = 200, description = "A page of runs; `has_more` says whether others follow `last_id`",
            body = crate::openapi::RunList),
        (status = 400, description = "A parameter is invalid", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    let page = listing::page(&query, PAGE, USUAL)?;
    let of = RunsOf {
        session: query.get("session").cloned(),
        since_ms: gateway.options.runs.oldest_ms(),
    };
    gateway.runs.flush().await;
    let found = gateway.records.runs(&caller.owner, of, page).await?;
    Ok(Json(listing::told(found, |row| json!(RunAnswer::of(row)))?))
}

/// A run.
#[utoipa::path(
    get, operation_id = "get_run", path = "/v1/runs/{id}", tag = "runs",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The run", body = crate::openapi::Run),
        (status = 404, description = "The caller has no such run", body = crate::openapi::Error),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunAnswer>, Problem> {
    let row = row_of(&gateway, &caller, &id).await?;
    Ok(Json(RunAnswer::of(&row)))
}

/// Exports a run with the runs before it in its sandbox, their code and their inputs. The request
/// counts as a cell.
#[utoipa::path(
    get, operation_id = "export_run", path = "/v1/runs/{id}/export", tag = "runs",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "One document", body = crate::openapi::RunExport),
        (status = 404, description = "The caller has no such run", body = crate::openapi::Error),
        (status = 429, description = "A quota of cells is used up; see `Retry-After`",
            body = crate::openapi::Error),
        (status = 503, description = "Too many such requests are waiting; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn export(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RunExport>, Problem> {
    let chain = chain_of(&gateway, &caller, &id).await?;
    let store = gateway.store.clone();
    let work = async move { Ok(RunExport::of(chain, &store).await) };
    let (export, _permit) = convert(&gateway, &caller.owner, work).await?;
    Ok(Json(export))
}

/// Runs it again in a fresh sandbox, and compares what it makes by hash. The cells before it in its
/// sandbox run first.
#[utoipa::path(
    post, operation_id = "replay_run", path = "/v1/runs/{id}/replay", tag = "runs",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "Whether it made the same, or why it cannot be replayed",
            body = crate::openapi::Replay),
        (status = 404, description = "The caller has no such run", body = crate::openapi::Error),
        (status = 429, description = "A quota of the caller is used up", body = crate::openapi::Error),
    )
)]
pub(crate) async fn again(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ReplayAnswer>, Problem> {
    let chain = chain_of(&gateway, &caller, &id).await?;
    let running = gateway.clone();
    let report = attended(&gateway, "replay the run", |gone| async move {
        tokio::select! {
            replayed = replay(&running, &caller, &id, chain) => Some(replayed),
            () = gone.cancelled() => None,
            () = running.ending.cancelled() => None,
        }
    });
    let report = report.await?;
    Ok(Json(ReplayAnswer::of(report)))
}

async fn replay(gateway: &Gateway, caller: &Caller, id: &str, chain: Chain) -> Result<ReplayReport, Problem> {
    if let Some(reason) = chain.gap {
        return Ok(ReplayReport::impossible(id, vec![reason]));
    }
    let interpreter = gateway.interpreter()?;
    let _sandbox = gateway.quotas.sandbox(&caller.owner).await?;
    let terms = ReplayTerms {
        snippets: gateway.options.cells.snippets.clone(),
        max_timeout: Some(gateway.options.max_cell_timeout),
        max_network: gateway.max_network(&caller.owner).await?,
        min_guard: gateway.options.cells.guard,
        sink: gateway.run_sink(&caller.owner),
    };
    let planned = Replay::plan(interpreter, &chain.records, terms).await;
    let replay = match planned {
        Ok(replay) => replay,
        Err(reasons) => return Ok(ReplayReport::impossible(id, reasons)),
    };
    // One permit for all of its cells, which run one after the other.
    let permit = gateway.quotas.cell(&caller.owner).await?;
    let report = replay.run().await?;
    permit.done(report.took);
    Ok(report)
}

/// A run of the caller with those before it.
async fn chain_of(gateway: &Gateway, caller: &Caller, id: &str) -> Result<Chain, Problem> {
    let row = row_of(gateway, caller, id).await?;
    Ok(Chain::of(&gateway.records, row, gateway.options.runs.oldest_ms()).await?)
}

async fn row_of(gateway: &Gateway, caller: &Caller, id: &str) -> Result<RunRow, Problem> {
    gateway.runs.flush().await;
    let since = gateway.options.runs.oldest_ms();
    let row = gateway.records.run(&caller.owner, id, since).await?;
    row.ok_or_else(|| {
        let message = format!("there is no run {id:?}; `GET /v1/runs` lists those that are kept");
        Problem::missing("run_not_found", message)
    })
}
