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
pub(crate) use serve::{__path_serve, body_of, serve, visible};

/// Maximum number of artifacts that a note names.
const NAMED: usize = 8;

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

/// Lets somebody read what a cell of theirs has made. The cell has run: a failure is a note in its report.
pub(crate) async fn grant_report(records: &Records, owner: &str, report: &mut CellReport) {
    let made = report.artifacts.iter().map(|artifact| artifact.sha256.clone());
    let note = grant_made(records, owner, made.collect()).await;
    add_note(&mut report.note, note);
}

/// Lets somebody read what their code has made. Returns a note for its result if that fails.
pub(crate) async fn grant_made(records: &Records, owner: &str, made: Vec<String>) -> Option<String> {
    let mut named = made.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if made.len() > NAMED {
        named = format!("{named} and {} more", made.len() - NAMED);
    }
    let error = grant(records, owner, made).await.err()?;
    tracing::error!(
        error = &error as &dyn std::error::Error,
        "let a caller read what code made"
    );
    let why = if error.is_full() {
        "the server's disk is full"
    } else {
        "the server could not write its records; its log says why"
    };
    Some(format!(
        "these artifacts cannot be read, because {why}: {named}. Do not run it again: free space on the \
         server, then display the values again"
    ))
}

/// Adds a note to those that are there.
pub(crate) fn add_note(notes: &mut Option<String>, note: Option<String>) {
    let Some(note) = note else { return };
    *notes = Some(match notes.take() {
        Some(before) => format!("{before}. {note}"),
        None => note,
    });
}
