//! Artifacts by their sha256, for those whose code made them.

mod media;
mod range;
mod rows;
mod serve;

use axum::Router;
use axum::routing::get;
use cellblock_interpreter::report::CellReport;

use crate::records::{Records, RecordsError};
use crate::state::Gateway;

pub(crate) use media::{is_active, type_of};
pub(crate) use rows::{__path_rows, rows};
pub(crate) use serve::{__path_serve, serve, visible};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/artifacts/{sha256}", get(serve))
        .route("/v1/artifacts/{sha256}/rows", get(rows))
}

/// Lets somebody read artifacts. What is not granted is not found.
pub(crate) async fn grant(
    records: &Records,
    owner: &str,
    sha256: impl IntoIterator<Item = String>,
) -> Result<(), RecordsError> {
    records.grant_artifacts(owner, sha256.into_iter().collect()).await
}

/// Lets somebody read what a cell of theirs has made.
pub(crate) async fn grant_report(
    records: &Records,
    owner: &str,
    report: &CellReport,
) -> Result<(), RecordsError> {
    let made = report.artifacts.iter().map(|artifact| artifact.sha256.clone());
    grant(records, owner, made).await
}
