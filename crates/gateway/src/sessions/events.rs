//! `GET /v1/sessions/{id}/events`: what happened to a session beside its cells.

use axum::extract::{Path, State};
use cellblock_interpreter::session::timeline::SessionEvent;

use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Lists the last 256 events of a session, the oldest first: its checkpoints, rollbacks, tries,
/// forks, hibernation, resets, and deaths of its kernel. Answers also while a cell runs.
#[utoipa::path(
    get, operation_id = "list_session_events", path = "/v1/sessions/{id}/events", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The events", body = crate::openapi::SessionEventList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<SessionEvent>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    Ok(Json(ListAnswer::new(held.session.events())))
}
