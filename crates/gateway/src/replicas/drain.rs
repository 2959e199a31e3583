//! A gateway that is asked to stop while others live: it serves what it has for a while, and what
//! is new goes to the others.
//!
//! ```text
//! stop ── draining: /readyz 503, the port is open ────────────────────── nothing is left, or the grace period is over ── stopping
//!            ├ requests for its sessions, containers and responses: here
//!            └ new ones: the first other gateway that accepts them; if none does, 503 with Retry-After
//! ```
//!
//! A request that another gateway has sent is not sent on, so two gateways that drain pass no
//! request back and forth.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind, ResponseRequest};
use tokio::time::sleep;

use super::{DRAINING, forward, locate, wanted};
use crate::json;
use crate::problem::Problem;
use crate::records::holders::{self, HoldingGateway};
use crate::state::Gateway;

/// Minimum time for which a gateway drains: in it, load balancers read that the gateway is not ready.
const NOTICE: Duration = Duration::from_secs(5);
/// Interval between two looks at what is left.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum number of gateways that one new request is offered to.
const OFFERS: usize = 3;
/// Paths that are answered until the port is closed.
const ANSWERED: [&str; 3] = ["/healthz", "/metrics", "/readyz"];

/// Serves what the gateway has, until nothing is left, the grace period is over, or it has to stop at once.
pub(crate) async fn hand_over(gateway: &Gateway) {
    if gateway.stopping.is_cancelled() {
        return;
    }
    let grace = gateway.options.http.grace;
    tracing::info!(grace_seconds = grace.as_secs_f64(), "draining");
    let empty = async {
        sleep(NOTICE.min(grace)).await;
        while !gateway.quotas.is_idle() {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = empty => {}
        () = sleep(grace) => tracing::warn!("sessions are left at the end of the grace period"),
        () = gateway.stopping.cancelled() => return,
    }
    // Owners whose sessions were here find another home.
    let id = gateway.id.clone();
    let left = gateway
        .records
        .with(move |database| holders::leave_homes(database, &id));
    if let Err(error) = left.await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "give up the homes of owners"
        );
    }
}

/// Answers a request for something new with what another gateway answers, beginning with `first`.
pub(super) async fn elsewhere(
    gateway: &Gateway,
    first: Option<HoldingGateway>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let whole = Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await;
    let body = match json::read(whole) {
        Ok(body) => body,
        Err(error) => return Problem::from(error).into_response(),
    };
    let others = match locate::others(gateway).await {
        Ok(others) => others,
        Err(error) => return Problem::from(error).into_response(),
    };
    for holder in first.into_iter().chain(others).take(OFFERS) {
        let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
        match forward::sent(gateway, &holder, request).await {
            // It drains, too, or has ended: nothing was done.
            Ok(answer) if is_refusal(&answer) => {}
            Err(error) if error.code.as_deref() == Some("gateway_unreachable") => {}
            Ok(answer) => return answer,
            Err(error) => return Problem::from(error).into_response(),
        }
    }
    refused()
}

/// Checks whether a response can begin here. While the gateway drains, only one can that continues
/// in a container which is here; for another one, a gateway is noted.
pub(crate) async fn accepts(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
    found: Option<&str>,
) -> Result<(), ApiError> {
    let named = locate::named_container(request).map(String::as_str);
    let container = named.or(found);
    let is_here = container.is_some_and(|id| gateway.containers.has(owner, id));
    if !gateway.is_draining() || is_here {
        return Ok(());
    }
    if wanted::can_note()
        && let Some(other) = locate::others(gateway).await?.into_iter().next()
    {
        return Err(wanted::note(other));
    }
    // Another gateway may have sent it because the container was here a moment ago.
    if container.is_some() {
        return Ok(());
    }
    Err(draining())
}

/// Before all routes: rejects what comes after the gateway has begun to stop.
pub(crate) async fn refuse(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    if gateway.stopping.is_cancelled() && !ANSWERED.contains(&request.uri().path()) {
        return refused();
    }
    next.run(request).await
}

/// The answer to new work that no gateway accepts now.
pub(super) fn refused() -> Response {
    Problem::from(draining()).into_response()
}

fn is_refusal(answer: &Response) -> bool {
    answer.status() == StatusCode::SERVICE_UNAVAILABLE && answer.headers().contains_key(DRAINING)
}

fn draining() -> ApiError {
    ApiError {
        kind: ErrorKind::Unavailable,
        code: Some("draining".to_owned()),
        message: "the gateway is stopping and accepts no new work; send the request again".to_owned(),
        param: None,
    }
}
