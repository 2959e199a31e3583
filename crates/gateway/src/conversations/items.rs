//! `/v1/conversations/{id}/items`.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use cellblock_agent::wire::{ApiError, ConversationRequest, ErrorKind, Ids};
use serde_json::{Value, json};

use super::routes;
use crate::json::Json;
use crate::json::read;
use crate::listing::{self, QueryParameters};
use crate::now;
use crate::problem::Problem;
use crate::records::{AddedItems, ConversationUpdate, ItemRow};
use crate::responses::{conversation, kept};
use crate::state::{Caller, Gateway};

/// Maximum number of items in one answer, and how many there are where nothing is said.
const PAGE: (usize, usize) = (100, 20);

/// Value of `include` that requests the outputs of code.
const OUTPUTS: &str = "code_interpreter_call.outputs";

pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): QueryParameters,
    address: axum::http::Uri,
) -> Result<Json<Value>, Problem> {
    let page = listing::page(&query, PAGE.0, PAGE.1)?;
    conversation::find(&gateway, &caller.owner, &id).await?;
    let found = gateway
        .records
        .conversation_items(&caller.owner, &id, page)
        .await?;
    let outputs = wants_outputs(&address);
    Ok(Json(listing::told(found, |row| shown(row, outputs))?))
}

pub(super) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    address: axum::http::Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let request = ConversationRequest::parse(&read(body)?, &mut Ids::random())?;
    if request.items.is_empty() {
        let message = "`items` is required and has no items";
        return Err(ApiError::invalid("items", "missing_required_parameter", message).into());
    }
    conversation::find(&gateway, &caller.owner, &id).await?;
    let items = conversation::known(&gateway, &caller, &request.items).await?;
    let left = ConversationUpdate {
        conversation: id.clone(),
        items: items.clone(),
        container: conversation::container(&request.items),
        evidence: None,
        most: conversation::MAX_ITEMS,
        now: now(),
    };
    gateway
        .quotas
        .store_more(&caller.owner, left.bytes() as u64)
        .await?;
    match gateway.records.extend_conversation(&caller.owner, left).await? {
        AddedItems::Yes => {}
        AddedItems::Unknown | AddedItems::Deleted => return Err(conversation::unknown(&id).into()),
        AddedItems::Full => return Err(conversation::full(&id).into()),
    }
    let outputs = wants_outputs(&address);
    let data: Vec<_> = items.iter().map(|row| shown(row, outputs)).collect();
    let first = items.first().map(|row| row.id.clone());
    let last = items.last().map(|row| row.id.clone());
    Ok(Json(json!({
        "object": "list", "first_id": first, "last_id": last, "has_more": false, "data": data,
    })))
}

pub(super) async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    address: axum::http::Uri,
) -> Result<Json<Value>, Problem> {
    conversation::find(&gateway, &caller.owner, &id).await?;
    let found = gateway
        .records
        .conversation_item(&caller.owner, &id, &item)
        .await?;
    let row = found.ok_or_else(|| no_item(&id, &item))?;
    Ok(Json(shown(&row, wants_outputs(&address))))
}

/// Deletes an item; its conversation is the answer.
pub(super) async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let conversation = conversation::find(&gateway, &caller.owner, &id).await?;
    let records = &gateway.records;
    if !records
        .remove_conversation_item(&caller.owner, &id, &item)
        .await?
    {
        return Err(no_item(&id, &item).into());
    }
    Ok(Json(routes::object(&conversation)?))
}

/// Returns an item as clients receive it.
fn shown(row: &ItemRow, outputs: bool) -> Value {
    let mut item: Value = kept(&row.body).unwrap_or_else(|_| json!({"id": row.id}));
    if !outputs && item["type"] == "code_interpreter_call" {
        item["outputs"] = Value::Null;
    }
    item
}

/// Whether an address asks for the outputs of code. SDKs write the key once for each value, with
/// and without brackets.
fn wants_outputs(address: &axum::http::Uri) -> bool {
    let query = Query::<Vec<(String, String)>>::try_from_uri(address);
    query.is_ok_and(|Query(pairs)| {
        pairs
            .iter()
            .any(|(key, value)| matches!(key.as_str(), "include" | "include[]") && value == OUTPUTS)
    })
}

fn no_item(conversation: &str, item: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("item_not_found".to_owned()),
        message: format!("conversation `{conversation}` has no item `{item}`"),
        param: Some("item_id".to_owned()),
    }
}
