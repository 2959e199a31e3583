//! Signing in with a key, and out again.

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Extension, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ErrorKind;
use serde::Deserialize;
use std::net::SocketAddr;

use super::cookie;
use super::ticket::ConsoleTicket;
use crate::problem::Problem;
use crate::sessions::body;
use crate::state::{Caller, Gateway};

/// A key to sign in with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    key: String,
}

/// Turns a key into a cookie.
pub(super) async fn sign_in(
    State(gateway): State<Gateway>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    own(&headers)?;
    let SignIn { key } = body::json(&headers, &body)?;
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer);
    let Caller { owner } = gateway
        .identify(Some(key.trim()), "/console/sign-in", peer)
        .await?;
    if Caller::is_local(&owner) {
        // Nobody needs a key here.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    tracing::info!(target: crate::SECURITY, event = "console_signed_in", key = owner);
    let ticket = ConsoleTicket::new(owner).sign(&gateway).await?;
    let cookie = cookie::set(&headers, &ticket);
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

/// Ends the cookie.
pub(super) async fn sign_out(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    own(&headers)?;
    if let Some(ticket) = cookie::ticket(&gateway, &headers).await? {
        ticket.end(&gateway);
    }
    let removed = (SET_COOKIE, cookie::remove(&headers));
    Ok((StatusCode::NO_CONTENT, [removed]).into_response())
}

/// Pages of others must not sign anybody in, which could make them work under a stranger's key, or out.
fn own(headers: &HeaderMap) -> Result<(), Problem> {
    if cookie::is_own(headers) {
        return Ok(());
    }
    let message =
        "only the console signs people in and out; programs send their key as `Authorization: Bearer <key>`";
    let kind = ErrorKind::InvalidRequestError;
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        kind,
        "not_the_console",
        message,
    ))
}
