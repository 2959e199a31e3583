//! The stored cells of a session.

use axum::extract::{Path, State};
use cellblock_interpreter::report::CellReport;
use serde::Serialize;
use serde_json::Value;

use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::{StoredCell, lock};
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
    /// Number of the cell whose variables and files it found; absent if it is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<u64>,
    /// Whether the session's state does not come from it, because of a later rollback or as a discarded try.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) discarded: bool,
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
) -> Result<Json<ListAnswer<Value>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let cells = lock(&held.cells);
    let cells: Vec<_> = cells.iter().map(|(cell, gone)| (cell.clone(), gone)).collect();
    let cells = cells.iter().filter_map(|(cell, gone)| answer(cell, *gone).ok());
    Ok(Json(ListAnswer::new(cells.collect())))
}

/// Returns a stored cell as it is now.
fn answer(cell: &StoredCell, discarded: bool) -> serde_json::Result<Value> {
    let mut value: Value = serde_json::from_str(&cell.json)?;
    if discarded {
        value["discarded"] = true.into();
    }
    Ok(value)
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
) -> Result<Json<Value>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let missing = || {
        Problem::missing(
            "cell_not_found",
            "there is no such cell, or it is not kept any more",
        )
    };
    let number: u64 = cell.parse().map_err(|_| missing())?;
    let kept = lock(&held.cells);
    let (found, gone) = kept
        .iter()
        .find(|(kept, _)| kept.cell == number)
        .ok_or_else(missing)?;
    let value = answer(found, gone).map_err(|error| Problem::internal("read the cell", &error))?;
    Ok(Json(value))
}
