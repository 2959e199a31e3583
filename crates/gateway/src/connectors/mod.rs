//! The connectors of the caller's key, called without a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use cellblock_agent::wire::ErrorKind;
use cellblock_interpreter::connector::{Bundle, FetchRecord, direct};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::artifacts;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::sessions::body;
use crate::state::{Caller, Gateway, described};

/// Maximum duration of a call; connectors have shorter ones of their own.
const LONGEST: Duration = Duration::from_mins(10);
/// Maximum size in bytes of a JSON value in an answer.
const VALUE_BYTES: u64 = 1 << 20;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/connectors", get(list))
        .route("/v1/connectors/{connector}/{function}", post(call))
}

/// Result of a function.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConnectorAnswer {
    #[serde(flatten)]
    record: FetchRecord,
    /// The answer, if it is not a table in Arrow form.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Whether the answer has more than is here: rows beyond `head` and `tail`, or a value of more
    /// than 1 MiB. All of it is the Parquet file at `/v1/artifacts/{sha256}` if there is an
    /// `artifact`.
    truncated: bool,
}

/// Lists the connectors that code of the caller's key can call.
#[utoipa::path(
    get, operation_id = "list_connectors", path = "/v1/connectors", tag = "connectors",
    responses((status = 200, description = "The connectors with their functions",
        body = crate::openapi::ConnectorList)),
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Result<Json<ListAnswer<Bundle>>, Problem> {
    let granted = gateway.connectors(&caller.owner).await?;
    Ok(Json(ListAnswer::new(direct::bundles(&granted).await)))
}

/// Calls a function as code of a session would, with the same checks, quotas and record.
#[utoipa::path(
    post, operation_id = "call_connector", path = "/v1/connectors/{connector}/{function}", tag = "connectors",
    params(("connector" = String, Path), ("function" = String, Path)),
    request_body(content = Object, description = "The arguments by name, `{}` if there are none"),
    responses(
        (status = 200, description = "The answer", body = crate::openapi::ConnectorAnswer),
        (status = 400, description = "The function or an argument is invalid", body = crate::openapi::Error),
        (
            status = 404,
            description = "The key has no such connector, or there is no data for these arguments",
            body = crate::openapi::Error
        ),
        (
            status = 429,
            description = "A quota of the key or a rate limit of the other side is used up; \
                           `Retry-After` says for how long, if that is known",
            body = crate::openapi::Error
        ),
        (status = 502, description = "The other side failed", body = crate::openapi::Error),
        (status = 504, description = "The other side did not answer in time", body = crate::openapi::Error),
    )
)]
pub(crate) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((name, function)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<ConnectorAnswer>, Problem> {
    let granted = gateway.connectors(&caller.owner).await?;
    let connector = granted.iter().find(|it| it.name() == name);
    let connector = connector.ok_or_else(|| {
        let message = format!("there is no connector {name:?}; {}", described(&granted));
        Problem::missing("connector_not_found", message)
    })?;
    let arguments: Map<String, Value> = body::json(&headers, &body)?;
    let terms = gateway
        .interpreter()?
        .grant_terms(gateway.fetch_allowance(&caller.owner, None));
    let until = Instant::now() + LONGEST;
    let done = direct::call(Arc::clone(connector), &function, arguments, until, terms).await;
    let (Some(mut record), value) = done else {
        return Err(Problem::invalid(
            "function",
            format!("{function:?} is not a function"),
        ));
    };
    if record.outcome != "ok" {
        return Err(failed(&record));
    }
    let table = record.artifact.iter().map(|it| it.sha256.to_string());
    let note = artifacts::grant_made(&gateway.records, &caller.owner, table.collect()).await;
    artifacts::add_note(&mut record.note, note);
    let fits = record.bytes.is_none_or(|bytes| bytes <= VALUE_BYTES);
    let shown = (record.head.len() + record.tail.len()) as u64;
    let truncated = match &value {
        Some(_) => !fits,
        None => record.row_count.is_some_and(|rows| rows > shown),
    };
    Ok(Json(ConnectorAnswer {
        value: value.filter(|_| fits),
        truncated,
        record,
    }))
}

/// Says why a call has no answer.
fn failed(record: &FetchRecord) -> Problem {
    let message = record.error.as_deref().unwrap_or("the call was canceled");
    let (status, kind) = match record.outcome {
        "invalid_parameter" => (StatusCode::BAD_REQUEST, ErrorKind::InvalidRequestError),
        "empty_data" | "not_granted" => (StatusCode::NOT_FOUND, ErrorKind::NotFound),
        "rate_limit" => (StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooManyRequests),
        "timeout" => (StatusCode::GATEWAY_TIMEOUT, ErrorKind::ServerError),
        _ => (StatusCode::BAD_GATEWAY, ErrorKind::ServerError),
    };
    Problem::new(status, kind, record.outcome, message).retry_after(record.retry_after)
}
