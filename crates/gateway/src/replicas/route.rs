//! Layer before routes whose objects live in one gateway.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::locate::{self, ReplicaLocation};
use super::{FORWARDED_BY, drain, forward, noting};
use crate::json;
use crate::problem::Problem;
use crate::records::RecordsError;
use crate::state::{Caller, Gateway};

/// Path parameters, unless the route has none.
type Params = Result<RawPathParams, axum::extract::rejection::RawPathParamsRejection>;

/// Before routes of sessions.
pub(crate) async fn sessions(
    State(gateway): State<Gateway>,
    caller: Caller,
    params: Params,
    request: Request,
    next: Next,
) -> Response {
    match first(params) {
        Some(id) => at_session(&gateway, &caller.owner, &id, request, next).await,
        None => created(&gateway, request, next).await,
    }
}

/// Answers a request that names nothing yet. While this gateway drains, another one creates what is new.
async fn created(gateway: &Gateway, request: Request, next: Next) -> Response {
    if !gateway.is_draining() || request.method() != Method::POST {
        return next.run(request).await;
    }
    if may_forward(gateway, &request) {
        drain::elsewhere(gateway, None, request).await
    } else {
        drain::refused()
    }
}

/// Answers a request for a session where the session is.
pub(crate) async fn at_session(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    request: Request,
    next: Next,
) -> Response {
    if !may_forward(gateway, &request) {
        return next.run(request).await;
    }
    let place = locate::session(gateway, owner, id).await;
    go(gateway, place, request, next).await
}

/// Before routes of containers.
pub(crate) async fn containers(
    State(gateway): State<Gateway>,
    caller: Caller,
    params: Params,
    request: Request,
    next: Next,
) -> Response {
    let Some(id) = first(params) else {
        return created(&gateway, request, next).await;
    };
    if !may_forward(&gateway, &request) {
        return next.run(request).await;
    }
    let place = locate::container(&gateway, &caller.owner, &id).await;
    go(&gateway, place, request, next).await
}

/// Before routes of responses and chat completions. A request that makes a response says in its
/// body what it needs.
pub(crate) async fn responses(
    State(gateway): State<Gateway>,
    caller: Caller,
    params: Params,
    request: Request,
    next: Next,
) -> Response {
    if !may_forward(&gateway, &request) {
        return next.run(request).await;
    }
    let Some(id) = first(params) else {
        return match *request.method() {
            Method::POST => again(&gateway, request, next).await,
            _ => next.run(request).await,
        };
    };
    // The code of one that has ended may still wait for its client.
    let unfinished = request.method() != Method::DELETE;
    let place = locate::response(&gateway, &caller.owner, &id, unfinished).await;
    go(&gateway, place, request, next).await
}

pub(super) fn may_forward(gateway: &Gateway, request: &Request) -> bool {
    gateway.records.is_shared() && !request.headers().contains_key(FORWARDED_BY)
}

fn first(params: Params) -> Option<String> {
    let params = params.ok()?;
    params.iter().next().map(|(_, id)| id.to_owned())
}

pub(super) async fn go(
    gateway: &Gateway,
    place: Result<ReplicaLocation, RecordsError>,
    request: Request,
    next: Next,
) -> Response {
    match place {
        Ok(ReplicaLocation::Here) => next.run(request).await,
        Ok(ReplicaLocation::At(holder)) => forward::send(gateway, &holder, request).await,
        Ok(ReplicaLocation::Lost) => lost().into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn lost() -> Problem {
    let message = "the gateway that had this session has ended: its variables and the files of its \
                   sandbox are gone; artifacts, uploaded files, datasets and stored responses are kept. \
                   Create a new session";
    Problem::missing("session_not_found", message)
}

/// Answers a request here, or has the gateway answer it that the route has noted.
async fn again(gateway: &Gateway, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let whole = Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await;
    let body = match json::read(whole) {
        Ok(body) => body,
        Err(error) => return Problem::from(error).into_response(),
    };
    let request = || Request::from_parts(parts.clone(), Body::from(body.clone()));
    match noting(next.run(request())).await {
        (_, Some(holder)) if gateway.is_draining() => {
            drain::elsewhere(gateway, Some(holder), request()).await
        }
        (_, Some(holder)) => forward::send(gateway, &holder, request()).await,
        (answer, None) => answer,
    }
}
