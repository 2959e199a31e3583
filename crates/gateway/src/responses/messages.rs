//! `POST /v1/messages`: a request of Anthropic's API as one of the Responses API, and its events as
//! a message. Nothing is stored.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response as Answer};
use cellblock_agent::wire::anthropic::{self, ContainerLookup, ContainerReport, MessageEvents};
use cellblock_agent::wire::{ApiError, Container, Dialect, ErrorKind, Ids, MessagesRequest, Tool};
use serde_json::{Value, json};

use super::create::play;
use super::prepare::prepare;
use super::stream::{self, Trimmings};
use super::tokens;
use crate::anthropic::time;
use crate::json::read;
use crate::now_ms;
use crate::problem::Problem;
use crate::skills;
use crate::state::{Caller, Gateway};

pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer, Problem> {
    let body = read(body)?;
    let mut ids = Ids::random();
    let request = MessagesRequest::parse(&body, &mut ids)?;
    check_skills(&gateway, &caller, &request)?;
    let mut events = MessageEvents::new(ids.mint("msg"), &request, lookup(&gateway, &caller));
    let stream = request.request.stream;
    let job = prepare(&gateway, &caller, request.request, Dialect::default(), None).await;
    let mut played = play(job.map_err(of_messages)?).await?;
    if stream {
        let frames = move |event: cellblock_agent::wire::StreamEvent| {
            let told = events.take(event.kind);
            told.iter().map(anthropic::frame).collect()
        };
        return Ok(stream::live(&gateway, played, frames, Trimmings::MESSAGES));
    }
    let mut told = Vec::new();
    while let Some(event) = played.recv().await {
        told.extend(events.take(event.kind));
    }
    let message = anthropic::whole(told);
    let message = message.ok_or_else(|| events.take_error().unwrap_or_else(stopping));
    Ok(Json(message?).into_response())
}

/// Returns an error with the parameter of this API, whose container is not a field of a tool.
fn of_messages(error: ApiError) -> ApiError {
    let param = error.param.map(|param| match param.split_once("].container") {
        Some((tool, rest)) if tool.starts_with("tools[") => format!("container{rest}"),
        _ => param,
    });
    ApiError { param, ..error }
}

/// Counts the tokens of a request that is not answered.
pub(super) async fn count(
    State(gateway): State<Gateway>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let request = MessagesRequest::parse_counted(&read(body)?, &mut Ids::random())?;
    let (tokens, _) = tokens::counted(&gateway, &caller, request.request).await?;
    Ok(Json(json!({ "input_tokens": tokens })))
}

/// Returns what answers say of a container that is used now.
fn lookup(gateway: &Gateway, caller: &Caller) -> ContainerLookup {
    let (gateway, owner) = (gateway.clone(), caller.owner.clone());
    Box::new(move |id| {
        let live = gateway.containers.registry.get(&owner, id);
        let idle = live
            .as_ref()
            .map_or(gateway.options.containers.idle_timeout, |live| live.idle);
        let ends = now_ms().saturating_add(i64::try_from(idle.as_millis()).unwrap_or(i64::MAX));
        ContainerReport {
            expires_at: time(ends),
            skills: live.map_or_else(Vec::new, |live| skills::describe(&gateway, &live.session)),
        }
    })
}

/// Checks that the container that a request names has the skills that it lists.
fn check_skills(gateway: &Gateway, caller: &Caller, request: &MessagesRequest) -> Result<(), ApiError> {
    let containers = request.request.tools.iter().filter_map(|tool| match tool {
        Tool::CodeInterpreter {
            container: Container::Id(id),
        } => gateway.containers.registry.get(&caller.owner, id),
        _ => None,
    });
    for held in containers {
        skills::check_container(&held.session, &held.id, &request.skills)?;
    }
    Ok(())
}

fn stopping() -> ApiError {
    ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway is stopping".to_owned(),
        param: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_container_name_the_field_of_this_api() {
        for (param, expected) in [
            (
                "tools[2].container.skills[0].skill_id",
                "container.skills[0].skill_id",
            ),
            ("tools[0].container", "container"),
            ("tools[0].name", "tools[0].name"),
            ("messages", "messages"),
        ] {
            let error = of_messages(ApiError::invalid(param, "invalid_value", ""));
            assert_eq!(error.param.as_deref(), Some(expected));
        }
    }
}
