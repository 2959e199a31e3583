//! Responses that were made before: `GET` and `DELETE /v1/responses/{id}`, `…/cancel`, `…/input_items`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::wire::{ApiError, ErrorKind, Item, Response};
use cellblock_interpreter::json_error;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{stow, stream};
use crate::files::fetch;
use crate::problem::Problem;
use crate::records::responses::{self, ResponseRecord};
use crate::state::responses::{Log, LogPosition};
use crate::state::{Caller, Gateway};

/// Query of a request that retrieves a response.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RetrieveQuery {
    #[serde(default)]
    stream: bool,
    starting_after: Option<u64>,
}

pub(super) async fn get(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    wanted: Result<Query<RetrieveQuery>, QueryRejection>,
) -> Result<Answer, Problem> {
    let Query(wanted) = wanted.map_err(|error| query(&error))?;
    if !wanted.stream {
        let kept = find(&gateway, &caller, &id).await?;
        return Ok(body(&gateway, kept).await?);
    }
    let from = wanted.starting_after.map_or(0, |number| number.saturating_add(1));
    let log = match gateway.responses.find(&caller.owner, &id) {
        Some(running) => running.log,
        None => Arc::new(ended(&gateway, &caller, &id).await?),
    };
    // What is gone is told before the stream begins.
    let first = tokio::time::timeout(std::time::Duration::ZERO, log.at(from)).await;
    if let Ok(LogPosition::Gone(first)) = first {
        let message = format!(
            "the events before {first} are not kept any more; retrieve the response without `stream`"
        );
        return Err(ApiError::invalid("starting_after", "events_not_kept", message).into());
    }
    Ok(stream::follow(&gateway, log, from))
}

pub(super) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    if let Some(running) = gateway.responses.find(&caller.owner, &id) {
        running.cancel.cancel();
    }
    gateway.responses.unwritten.remove(&caller.owner, &id);
    // Its code is stopped, if it waits.
    drop(gateway.responses.suspended.take(&caller.owner, &id));
    let (owner, wanted) = (caller.owner, id.clone());
    let deleted = gateway
        .records
        .with(move |connection| responses::delete(connection, &owner, &wanted));
    let Some(unneeded) = deleted.await? else {
        return Err(not_found(&id).into());
    };
    forget(&gateway, &unneeded).await;
    // What was fetched for it goes, too.
    fetch::unpin(&gateway, &id).await;
    Ok(axum::Json(json!({"id": id, "object": "response", "deleted": true})).into_response())
}

pub(super) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    if let Some(running) = gateway.responses.find(&caller.owner, &id) {
        running.cancel.cancel();
        // Its code is stopped, so that this does not take long.
        running.log.ended().await;
    }
    let kept = find(&gateway, &caller, &id).await?;
    let response: Value = super::keep::read(&kept.body)?;
    if response["background"] != true {
        let message = "only background responses can be cancelled; to stop another, close its connection";
        return Err(Problem::from(ApiError::invalid(
            "response_id",
            "response_not_cancellable",
            message,
        )));
    }
    Ok(body(&gateway, kept).await?)
}

/// Query that selects a page of a list.
pub(super) type PageQuery = Result<Query<Page>, QueryRejection>;

/// Page of a list.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
}

pub(super) async fn input_items(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    page: PageQuery,
) -> Result<Answer, Problem> {
    let page = paged(page)?;
    let kept = find(&gateway, &caller, &id).await?;
    let mut items: Vec<Item> = super::keep::read(&kept.input)?;
    stow::restore(&gateway.store, &mut items).await;
    let items = items.into_iter().map(|item| json!(item)).collect();
    Ok(axum::Json(list(items, &page)?).into_response())
}

/// Reads which page is wanted.
pub(super) fn paged(page: PageQuery) -> Result<Page, ApiError> {
    page.map(|Query(page)| page).map_err(|error| query(&error))
}

pub(super) fn list(mut items: Vec<Value>, page: &Page) -> Result<Value, ApiError> {
    match page.order.as_deref() {
        Some("asc") => {}
        None | Some("desc") => items.reverse(),
        Some(other) => {
            let message = format!("`order` is `{other}`; it can be `asc` or `desc`");
            return Err(ApiError::invalid("order", "invalid_value", message));
        }
    }
    let limit = page.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        let message = format!("`limit` is out of range: {limit} is not from 1 to 100");
        return Err(ApiError::invalid("limit", "invalid_value", message));
    }
    if let Some(after) = &page.after {
        let Some(place) = items.iter().position(|item| item["id"] == **after) else {
            let message = format!("`after` names no item of this list: `{after}`");
            return Err(ApiError::invalid("after", "invalid_value", message));
        };
        items.drain(..=place);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    Ok(json!({
        "object": "list",
        "first_id": id(items.first()),
        "last_id": id(items.last()),
        "has_more": has_more,
        "data": items,
    }))
}

/// Lets go of the pictures of turns that nothing needs any more.
pub(super) async fn forget(gateway: &Gateway, turns: &[String]) {
    for turn in turns {
        fetch::unpin(gateway, &stow::owner(turn)).await;
    }
}

pub(super) async fn find(gateway: &Gateway, caller: &Caller, id: &str) -> Result<ResponseRecord, ApiError> {
    let (owner, wanted) = (caller.owner.clone(), id.to_owned());
    let found = gateway
        .records
        .with(move |connection| responses::find(connection, &owner, &wanted));
    let kept = found.await?.ok_or_else(|| not_found(id))?;
    Ok(match gateway.responses.unwritten.find(&caller.owner, id) {
        Some(ended) => ResponseRecord {
            status: ended.status,
            body: ended.body,
            ..kept
        },
        None => kept,
    })
}

/// The log of a response that does not run.
async fn ended(gateway: &Gateway, caller: &Caller, id: &str) -> Result<Log, ApiError> {
    let (owner, wanted) = (caller.owner.clone(), id.to_owned());
    let found = gateway
        .records
        .with(move |connection| responses::events(connection, &owner, &wanted));
    let unwritten = gateway.responses.unwritten.find(&caller.owner, id);
    let events = found.await?.or(unwritten.and_then(|ended| ended.events));
    if events.is_none() {
        // One that is not there at all is told as such.
        find(gateway, caller, id).await?;
    }
    events.as_deref().map(Log::from_text).ok_or_else(|| {
        let message = "events are kept of background responses only; retrieve this one without `stream`";
        ApiError::invalid("stream", "events_not_kept", message)
    })
}

/// The response as it was kept, with its pictures.
async fn body(gateway: &Gateway, kept: ResponseRecord) -> Result<Answer, ApiError> {
    let text = if stow::has_references(&kept.body) {
        let mut response: Response = super::keep::read(&kept.body)?;
        stow::restore(&gateway.store, &mut response.output).await;
        json!(response).to_string()
    } else {
        kept.body
    };
    Ok(([(CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}

fn query(rejection: &QueryRejection) -> ApiError {
    ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("invalid_query".to_owned()),
        message: json_error::describe(&rejection.body_text()),
        param: None,
    }
}

fn not_found(id: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("response_not_found".to_owned()),
        message: format!("there is no response `{id}`; it was not stored, or is deleted"),
        param: Some("response_id".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(page: &Page) -> (Vec<String>, bool) {
        let items = (1..=5).map(|number| json!({"id": format!("msg_{number}")}));
        let list = list(items.collect(), page).unwrap();
        let data = list["data"].as_array().unwrap();
        let ids: Vec<_> = data
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(list["first_id"].as_str(), ids.first().map(String::as_str));
        assert_eq!(list["last_id"].as_str(), ids.last().map(String::as_str));
        (ids, list["has_more"] == true)
    }

    fn page(after: Option<&str>, limit: usize, order: Option<&str>) -> Page {
        Page {
            after: after.map(str::to_owned),
            limit: Some(limit),
            order: order.map(str::to_owned),
        }
    }

    #[test]
    fn a_list_is_read_page_by_page_and_the_newest_is_first() {
        let (first, more) = ids(&page(None, 2, None));
        assert_eq!(
            (first, more),
            (vec!["msg_5".to_owned(), "msg_4".to_owned()], true)
        );
        let (last, more) = ids(&page(Some("msg_2"), 2, None));
        assert_eq!((last, more), (vec!["msg_1".to_owned()], false));
        let (all, more) = ids(&page(None, 5, Some("asc")));
        assert_eq!((all.len(), all[0].as_str(), more), (5, "msg_1", false));
        assert_eq!(ids(&page(Some("msg_5"), 5, Some("asc"))), (Vec::new(), false));
    }

    #[test]
    fn a_page_that_cannot_be_is_refused_by_its_name() {
        for (page, param) in [
            (page(Some("msg_9"), 2, None), "after"),
            (page(None, 0, None), "limit"),
            (page(None, 101, None), "limit"),
            (page(None, 2, Some("up")), "order"),
        ] {
            let items = vec![json!({"id": "msg_1"})];
            assert_eq!(list(items, &page).unwrap_err().param.unwrap(), param);
        }
    }
}
