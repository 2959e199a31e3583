//! Authentication of requests by API keys, if keys are required.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};

use super::mount::refused;
use super::throttle::Throttle;
use crate::keys::{KeyLookup, Secret};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Headers in which clients send keys, beside `Authorization: Bearer`.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "api-key"];
/// Challenge for a client without a key.
const CHALLENGE: &str = "Bearer realm=\"cellblock\"";
/// What everybody may ask.
const OPEN: [&str; 4] = ["/", "/healthz", "/readyz", "/health"];

/// Failures that are logged; when there are more, only their number is.
static FAILURES: Throttle = Throttle::new();

/// Lets a request through as that of its caller.
pub(super) async fn check(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    // A program around the gateway may know by other means who calls; nothing that comes over a connection becomes an extension.
    if is_open(&gateway, &request) || request.extensions().get::<Caller>().is_some() {
        return next.run(request).await;
    }
    let secret = presented(request.headers());
    let found = match gateway.keys.find(secret.as_deref().and_then(Secret::parse)).await {
        Ok(found) => found,
        Err(error) => return Problem::from(error).into_response(),
    };
    let required = gateway.options.auth.required || !gateway.options.listen.ip().is_loopback();
    let caller = match (found, secret.is_some()) {
        (KeyLookup::Key(owner, minimum), _) => {
            if let Err(error) = gateway.engine.satisfies(minimum) {
                let answer = (StatusCode::FORBIDDEN, axum::Json(&error));
                return refused(answer.into_response(), &error);
            }
            gateway.quotas.seen(&owner);
            Caller { owner }
        }
        (KeyLookup::Open, _) if !required => Caller::local(),
        (KeyLookup::Expired, _) => return refuse(&request, "expired", "the API key has expired"),
        (KeyLookup::Revoked, _) => return refuse(&request, "revoked", "the API key was revoked"),
        (KeyLookup::Open | KeyLookup::Unknown, true) => {
            // LiteLLM knows a wrong key by the first words, which are OpenAI's.
            let message = "Incorrect API key provided: it is not known here";
            return refuse(&request, "unknown", message);
        }
        (KeyLookup::Open | KeyLookup::Unknown, false) => {
            let message = "an API key is needed; send it as `Authorization: Bearer <key>`";
            return refuse(&request, "missing", message);
        }
    };
    tracing::Span::current().record("owner", &caller.owner);
    request.extensions_mut().insert(caller);
    next.run(request).await
}

fn is_open(gateway: &Gateway, request: &Request) -> bool {
    let path = request.uri().path();
    OPEN.contains(&path) || (path == super::METRICS && gateway.options.metrics.public)
}

/// The key that a client sends. It is taken out of nothing but headers: addresses end up in logs.
fn presented(headers: &HeaderMap) -> Option<String> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let bearer = text(AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let secret = bearer.or_else(|| KEY_HEADERS.iter().find_map(|name| text(name)))?;
    Some(secret.to_owned())
}

fn refuse(request: &Request, why: &'static str, message: &str) -> Response {
    crate::metrics::auth_failed(why);
    if let Some(more) = FAILURES.pass() {
        let peer = request.extensions().get::<SocketAddr>().copied();
        tracing::warn!(
            target: crate::SECURITY,
            event = "auth_failed",
            why,
            peer = peer.map(tracing::field::display),
            path = request.uri().path(),
            not_logged = more
        );
    }
    let error = ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("invalid_api_key".to_owned()),
        message: message.to_owned(),
        param: None,
    };
    // Some clients show nothing but this. A request without a key is told of no error: it did not know that there is one to send.
    let challenge = match why {
        "missing" => HeaderValue::from_static(CHALLENGE),
        _ => HeaderValue::from_str(&format!(
            "{CHALLENGE}, error=\"invalid_token\", error_description=\"{message}\""
        ))
        .unwrap_or(HeaderValue::from_static(CHALLENGE)),
    };
    let answer = (
        StatusCode::UNAUTHORIZED,
        [(WWW_AUTHENTICATE, challenge)],
        axum::Json(&error),
    );
    refused(answer.into_response(), &error)
}
