//! What is kept of responses.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::run::{Played, word};
use crate::provider::INTERPRETER;
use crate::records::RecordsError;
use crate::records::responses::{self, Begun, Ended};
use crate::server::Gateway;
use crate::wire::{
    ApiError, ErrorKind, FunctionCall, FunctionCallOutput, Item, ItemStatus, McpCall, Output, Request,
    Response, ResponseStatus,
};

/// Keeps a response that begins, so that it can be found, and is not lost without a word when the process ends.
pub(super) async fn begun(
    gateway: &Gateway,
    owner: &str,
    request: &Request,
    response: &Response,
) -> Result<(), ApiError> {
    let mut body = response.clone();
    let status = if response.background {
        body.status = ResponseStatus::Queued;
        "queued"
    } else {
        "in_progress"
    };
    let begun = Begun {
        id: response.id.clone(),
        owner: owner.to_owned(),
        status,
        created_at: response.created_at,
        body: json!(body).to_string(),
        input: json!(request.input).to_string(),
    };
    let kept = gateway
        .records
        .with(move |connection| responses::begin(connection, &begun));
    Ok(kept.await?)
}

/// Notes that a response waits no longer.
pub(super) async fn running(gateway: &Gateway, response: &Response) {
    let (id, body) = (response.id.clone(), json!(response).to_string());
    let noted = gateway
        .records
        .with(move |connection| responses::update(connection, &id, "in_progress", &body));
    if let Err(error) = noted.await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "note that a response runs"
        );
    }
}

/// Keeps what came of a response, if it is stored.
pub(super) async fn ended(
    gateway: &Gateway,
    owner: &str,
    previous: Option<String>,
    own: usize,
    played: &Played,
    events: Option<String>,
) {
    let response = &played.response;
    if !response.store {
        return;
    }
    let new = &played.conversation[own.min(played.conversation.len())..];
    let ended = Ended {
        id: response.id.clone(),
        owner: owner.to_owned(),
        status: word(response.status),
        body: json!(response).to_string(),
        events,
        previous,
        turn: json!(new).to_string(),
        container: played.container.clone(),
        evidence: played.remembered.clone(),
        results: match (&played.remembered, &played.evidence) {
            (Some(_), Some(evidence)) => evidence.results(),
            _ => Vec::new(),
        },
        items: known(&response.output, new),
    };
    let kept = match save(gateway, ended.clone()).await {
        // Somebody deleted what it went on from while it was written.
        Ok(false) => {
            let whole = Ended {
                previous: None,
                turn: json!(played.conversation).to_string(),
                ..ended
            };
            save(gateway, whole).await
        }
        kept => kept,
    };
    if let Err(error) = kept {
        tracing::error!(error = &error as &dyn std::error::Error, "keep a response");
    }
}

async fn save(gateway: &Gateway, ended: Ended) -> Result<bool, RecordsError> {
    let saved = gateway
        .records
        .with(move |connection| responses::end(connection, &ended));
    saved.await
}

/// Items of a response by their ids, each as the model knows it. Of code that is a call and what came back, whether or not the client saw it.
fn known(output: &[Item], conversation: &[Item]) -> Vec<(String, String)> {
    // Code is told in the order in which the model called it.
    let mut calls = conversation.iter().filter_map(|item| match item {
        Item::FunctionCall(call) if is_interpreter(call) => Some(call),
        _ => None,
    });
    let known = output.iter().map(|item| {
        let items = match item {
            Item::CodeInterpreterCall(_) => calls
                .next()
                .and_then(|call| ran(call, conversation))
                .map_or_else(|| vec![item.clone()], Vec::from),
            Item::McpCall(call) => fetched(call, conversation).map_or_else(|| vec![item.clone()], Vec::from),
            item => vec![item.clone()],
        };
        (item.id().to_owned(), json!(items).to_string())
    });
    known.collect()
}

fn ran(call: &FunctionCall, conversation: &[Item]) -> Option<[Item; 2]> {
    let output = conversation
        .iter()
        .find(|item| matches!(item, Item::FunctionCallOutput(output) if output.call_id == call.call_id));
    Some([Item::FunctionCall(call.clone()), output?.clone()])
}

/// The call of a server's tool as the model knows it: its id says which item tells it.
fn fetched(call: &McpCall, conversation: &[Item]) -> Option<[Item; 2]> {
    let id = format!("fc_{}", call.id);
    let made = conversation.iter().find_map(|item| match item {
        Item::FunctionCall(made) if made.id == id => Some(made),
        _ => None,
    });
    ran(made?, conversation)
}

/// Whether a call is one of code. What stands in a namespace is the client's, whatever its name.
fn is_interpreter(call: &FunctionCall) -> bool {
    call.namespace.is_none() && call.name == INTERPRETER
}

/// Whether a call is one that was served here, rather than by the client.
fn is_ours(call: &FunctionCall) -> bool {
    is_interpreter(call) || call.id.starts_with("fc_mcp_")
}

/// Says of code and tools that were broken off that they were: a call without an output is refused by every provider.
pub(super) fn mend(conversation: &mut Vec<Item>) {
    let answered: HashSet<String> = conversation
        .iter()
        .filter_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output.call_id.clone()),
            _ => None,
        })
        .collect();
    let mut place = 0;
    while place < conversation.len() {
        if let Item::FunctionCall(call) = &conversation[place]
            && is_ours(call)
            && !answered.contains(&call.call_id)
        {
            let call_id = call.call_id.clone();
            let output = FunctionCallOutput {
                id: format!("fco_{call_id}"),
                status: ItemStatus::Incomplete,
                call_id,
                output: Output::Text("(it was stopped, and what it gave is lost)".to_owned()),
            };
            place += 1;
            conversation.insert(place, Item::FunctionCallOutput(output));
        }
        place += 1;
    }
}

/// The container that a response's code ran in last.
pub(super) fn container(response: &Response) -> Option<String> {
    response.output.iter().rev().find_map(|item| match item {
        Item::CodeInterpreterCall(call) => Some(call.container_id.clone()),
        _ => None,
    })
}

/// Reads what was kept.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "read a kept response");
        ApiError {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "what was kept of a response cannot be read; the gateway's log says why".to_owned(),
            param: None,
        }
    })
}
