//! The stored cells of a session.

use axum::extract::{Path, State};
use cellblock_interpreter::report::CellReport;
use serde::Serialize;

use crate::json::Json;
use crate::listing::Listed;
use crate::problem::Problem;
use crate::state::sessions::lock;
use crate::state::{Caller, Gateway};

/// A cell as in `cellblock run --json`, with its session and number.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct CellAnswer {
    /// `session.cell`.
    pub(super) object: &'static str,
    /// The session's id.
    pub(super) session: String,
    /// Number of the cell in the session, starting at 1.
    pub(super) cell: u64,
    /// The code.
    pub(super) code: String,
    #[serde(flatten)]
    pub(super) report: CellReport,
}

/// Lists the last cells, the oldest first.
#[utoipa::path(
    get, operation_id = "list_cells", path = "/v1/sessions/{id}/cells", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The stored cells", body = crate::openapi::CellList),
        (status = 404, body = crate::openapi::Error, description = "The caller has no such session"),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Listed<serde_json::Value>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let cells: Vec<_> = lock(&held.cells).iter().cloned().collect();
    let cells = cells
        .iter()
        .filter_map(|cell| serde_json::from_str(&cell.json).ok());
    Ok(Json(Listed::new(cells.collect())))
}

/// Returns one of the last cells.
#[utoipa::path(
    get, operation_id = "get_cell", path = "/v1/sessions/{id}/cells/{cell}", tag = "sessions",
    params(("id" = String, Path), ("cell" = u64, Path, description = "Number of the cell, starting at 1")),
    responses(
        (status = 200, description = "The cell", body = crate::openapi::Cell),
        (status = 404, body = crate::openapi::Error, description = "There is no such session or cell"),
    )
)]
pub(crate) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, cell)): Path<(String, String)>,
) -> Result<Json<serde_json::Value>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let missing = || {
        Problem::missing(
            "cell_not_found",
            "there is no such cell, or it is not kept any more",
        )
    };
    let number: u64 = cell.parse().map_err(|_| missing())?;
    let kept = lock(&held.cells);
    let found = kept.iter().find(|kept| kept.cell == number).ok_or_else(missing)?;
    let value =
        serde_json::from_str(&found.json).map_err(|error| Problem::internal("read the cell", &error))?;
    Ok(Json(value))
}
