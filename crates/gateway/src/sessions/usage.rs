//! `GET /v1/sessions/{id}/usage`: what a session's sandbox uses.

use axum::extract::{Path, State};
use cellblock_interpreter::session::SessionUsage;
use serde::Serialize;

use super::run::attended;
use crate::json::Json;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Resources that a session's sandbox uses.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct UsageAnswer {
    /// `session.usage`.
    object: &'static str,
    /// Whether the session has a sandbox now; one is made for its first cell.
    sandbox: bool,
    #[serde(flatten)]
    usage: Option<SessionUsage>,
}

/// Returns what a session's sandbox uses. Like other requests, it waits until a running cell has ended.
#[utoipa::path(
    get, operation_id = "get_session_usage", path = "/v1/sessions/{id}/usage", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (
            status = 200,
            description = "Memory, processes and CPU time, as far as the sandbox's host counts them",
            body = crate::openapi::SessionUsage
        ),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<UsageAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let session = held.session.clone();
    let usage = attended(&gateway, turn, async move { Ok(session.usage().await?) }).await?;
    Ok(Json(UsageAnswer {
        object: "session.usage",
        sandbox: usage.is_some(),
        usage,
    }))
}
