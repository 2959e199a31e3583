//! What a session keeps of its cells, and what is said of them.

use std::collections::VecDeque;

use axum::extract::{Path, State};
use cellblock_interpreter::report::CellReport;
use serde::Serialize;

use super::answer::Listed;
use super::held::lock;
use crate::json::Json;
use crate::problem::Problem;
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

/// A cell that is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptCell {
    pub(super) cell: u64,
    /// Its JSON.
    pub(super) json: String,
}

/// The last cells of a session.
#[derive(Debug)]
pub(super) struct Kept {
    cells: VecDeque<KeptCell>,
    most: usize,
    most_bytes: usize,
    ran: u64,
}

impl Kept {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            cells: VecDeque::new(),
            most: most.max(1),
            most_bytes,
            ran: 0,
        }
    }

    /// Keeps one more, and forgets the oldest that there is no room for.
    pub(super) fn push(&mut self, cell: KeptCell) {
        self.ran = cell.cell;
        self.cells.push_back(cell);
        while self.cells.len() > 1 && (self.cells.len() > self.most || self.bytes() > self.most_bytes) {
            self.cells.pop_front();
        }
    }

    /// How many cells there were.
    pub(super) fn ran(&self) -> u64 {
        self.ran
    }

    fn bytes(&self) -> usize {
        self.cells.iter().map(|cell| cell.json.len()).sum()
    }
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
    let cells: Vec<_> = lock(&held.cells).cells.iter().cloned().collect();
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
    let found = kept
        .cells
        .iter()
        .find(|kept| kept.cell == number)
        .ok_or_else(missing)?;
    let value =
        serde_json::from_str(&found.json).map_err(|error| Problem::internal("read the cell", &error))?;
    Ok(Json(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(cell: u64, bytes: usize) -> KeptCell {
        let json = "x".repeat(bytes);
        KeptCell { cell, json }
    }

    fn numbers(kept: &Kept) -> Vec<u64> {
        kept.cells.iter().map(|kept| kept.cell).collect()
    }

    #[test]
    fn the_last_cells_are_kept_as_far_as_there_is_room_and_the_last_one_always() {
        let mut kept = Kept::new(3, 100);
        for number in 1..=5 {
            kept.push(cell(number, 10));
        }
        assert_eq!(numbers(&kept), [3, 4, 5]);
        kept.push(cell(6, 85));
        assert_eq!(numbers(&kept), [5, 6]);
        kept.push(cell(7, 1000));
        assert_eq!(numbers(&kept), [7]);
        assert_eq!(kept.ran(), 7);
    }
}
