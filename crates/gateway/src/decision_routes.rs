//! `GET /v1/decisions`.

use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::decisions::{Decision, MOST};
use crate::json::Json;
use crate::listing::{self, ListAnswer, QueryParameters};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Default number of decisions in one answer.
const USUAL: usize = 100;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/v1/decisions", get(list))
}

/// Lists the last decisions about what the caller's code and requests wanted, the latest first:
/// requests to hosts, and quotas that were used up. Equal ones are counted together. The gateway
/// keeps 500 of a key in memory, until it ends.
#[utoipa::path(
    get, operation_id = "list_decisions", path = "/v1/decisions", tag = "operations",
    params(
        ("session" = Option<String>, Query, description = "ID of the session whose decisions are listed"),
        ("limit" = Option<u32>, Query, description = "Maximum number of decisions, 1 to 500; by default 100"),
    ),
    responses(
        (status = 200, description = "The decisions", body = crate::openapi::DecisionList),
        (status = 400, description = "A parameter is invalid", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    query: QueryParameters,
) -> Result<Json<ListAnswer<Decision>>, Problem> {
    let limit = listing::page(&query, MOST, USUAL)?.limit;
    let session = query.get("session").map(String::as_str);
    let decisions = gateway.quotas.decisions().of(&caller.owner, session, limit);
    Ok(Json(ListAnswer::new(decisions)))
}
