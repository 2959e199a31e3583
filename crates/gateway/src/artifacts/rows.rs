//! `GET /v1/artifacts/{sha256}/rows`: rows of a table.

use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::page::SliceSelection;

use super::serve::{lost, visible};
use crate::conversions::{body_of, convert};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Returns rows of a table that a cell displayed. The request counts as a cell.
#[utoipa::path(
    get, operation_id = "read_rows", path = "/v1/artifacts/{sha256}/rows",
    tag = "artifacts",
    params(
        ("sha256" = String, Path, description = "64 lowercase hexadecimal digits"),
        ("offset" = Option<u64>, Query, description = "Index of the first row, from 0"),
        ("limit" = Option<u32>, Query, description = "Number of rows, 1 to 10,000; 1000 by default"),
        ("sort" = Option<u32>, Query, description = "Index from 0 of the column by which all rows are \
                                                     sorted; equal values keep their order, missing ones \
                                                     are last"),
        ("descending" = Option<bool>, Query, description = "Whether the largest value is first"),
        (
            "format" = Option<String>,
            Query,
            description = "`json` (the default; long cells are cut), `csv`, or `arrow` for an \
                           Arrow IPC stream"
        ),
    ),
    responses(
        (
            status = 200,
            description = "The rows; none beyond the last one. JSON has `columns`, `total_rows`, \
                           `first_row` and `rows`."
        ),
        (
            status = 400,
            description = "The artifact is not a table that was displayed, the column cannot be sorted, \
                           or the rows are more than 64 MiB",
            body = crate::openapi::Error
        ),
        (status = 404, description = "The caller has no such artifact", body = crate::openapi::Error),
        (status = 429, description = "A quota of cells is used up; see `Retry-After`",
            body = crate::openapi::Error),
        (status = 503, description = "Too many such requests are waiting; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn rows(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(sha256): Path<String>,
    Query(selection): Query<SliceSelection>,
) -> Result<Response, Problem> {
    let id = visible(&gateway, &caller, &sha256).await?;
    let table = gateway
        .store
        .metadata(id)
        .await
        .map_err(|error| lost(id, &error))?;
    let store = gateway.store.clone();
    let work = async move { Ok(selection.of(&table, &store).await?) };
    let (rows, permit) = convert(&gateway, &caller.owner, work).await?;
    let (length, body) = body_of(rows, permit)?;
    let headers = [
        (CONTENT_TYPE, selection.format.media_type()),
        (CONTENT_DISPOSITION, "attachment"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((
        headers.map(|(name, value)| (name, HeaderValue::from_static(value))),
        length,
        body,
    )
        .into_response())
}
