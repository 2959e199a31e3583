//! `GET /v1/responses`: the stored responses of a caller, in short; and `…/model_items`, what a
//! model read and said for one.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::UPGRADE;
use axum::response::{IntoResponse as _, Response as Answer};
use cellblock_agent::wire::Item;
use serde_json::{Map, Value, json};

use super::retrieve::{self, PageQuery};
use super::{keep, socket, stow};
use crate::listing::{self, QueryParameters};
use crate::problem::Problem;
use crate::records::responses::{self, ListedResponse};
use crate::state::{Caller, Gateway};

/// Maximum and default number of responses in one answer.
const PAGE: usize = 100;
const USUAL: usize = 20;
/// Fields of a response that a list has.
const FIELDS: [&str; 13] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "model",
    "previous_response_id",
    "conversation",
    "background",
    "usage",
    "error",
    "incomplete_details",
    "metadata",
];

/// Opens a WebSocket if the client asks for one, and lists responses otherwise.
pub(super) async fn list_or_open(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    query: QueryParameters,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Answer, Problem> {
    if headers.contains_key(UPGRADE) {
        return socket::open(gateway, caller, headers, upgrade);
    }
    let page = listing::page(&query, PAGE, USUAL)?;
    let owner = caller.owner.clone();
    let found = gateway
        .records
        .with(move |database| responses::list(database, &owner, &page))
        .await?;
    let object = |row: &ListedResponse| {
        let unwritten = gateway.responses.unwritten.find(&caller.owner, &row.id);
        let (status, body) = match &unwritten {
            Some(ended) => (&ended.status, &ended.body),
            None => (&row.status, &row.body),
        };
        summary(&row.id, status, body)
    };
    Ok(axum::Json(listing::told(found, object)?).into_response())
}

/// Returns what the model read and said for a response.
pub(super) async fn model_items(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    page: PageQuery,
) -> Result<Answer, Problem> {
    let page = retrieve::paged(page)?;
    retrieve::find(&gateway, &caller, &id).await?;
    let (owner, wanted) = (caller.owner.clone(), id.clone());
    let turn = gateway
        .records
        .with(move |database| responses::turn(database, &owner, &wanted));
    let unwritten = gateway.responses.unwritten.find(&caller.owner, &id);
    let turn = turn.await?.or(unwritten.map(|ended| ended.turn));
    let mut items: Vec<Item> = match turn {
        Some(turn) => keep::read(&turn)?,
        None => Vec::new(),
    };
    stow::restore(&gateway.store, &mut items).await;
    let items = items.into_iter().map(|item| json!(item)).collect();
    Ok(axum::Json(retrieve::list(items, &page)?).into_response())
}

/// A response without its items.
fn summary(id: &str, status: &str, body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let fields = FIELDS.iter().filter_map(|name| {
        let value = body.get(*name)?;
        Some(((*name).to_owned(), value.clone()))
    });
    let mut summary: Map<String, Value> = fields.collect();
    let mut counts: Map<String, Value> = Map::new();
    for item in body["output"].as_array().into_iter().flatten() {
        let count = counts
            .entry(item["type"].as_str().unwrap_or_default())
            .or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    summary.insert("id".to_owned(), json!(id));
    summary.insert("status".to_owned(), json!(status));
    summary.insert("output_counts".to_owned(), Value::Object(counts));
    Value::Object(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_items_and_leaves_out_what_they_say() {
        let body = json!({
            "id": "resp_1", "model": "m", "status": "in_progress", "instructions": "secret",
            "output": [{"type": "message"}, {"type": "code_interpreter_call"}, {"type": "message"}],
        });
        let summary = summary("resp_1", "completed", &body.to_string());
        assert_eq!(
            summary,
            json!({
                "id": "resp_1", "model": "m", "status": "completed",
                "output_counts": {"message": 2, "code_interpreter_call": 1},
            })
        );
    }
}
