//! Authentication of requests by API keys, if keys are required.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};

use super::accept::peer;
use super::mount::refused;
use super::throttle::Throttle;
use crate::console;
use crate::keys::{ApiKey, KeyLookup, Secret};
use crate::problem::Problem;
use crate::records::RecordsError;
use crate::state::connections::note_owner;
use crate::state::{Caller, Gateway};

/// Headers in which clients send keys, beside `Authorization: Bearer`.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "api-key"];
/// Challenge for a client without a key.
const CHALLENGE: &str = "Bearer realm=\"cellblock\"";
/// Paths that need no key.
const OPEN: [&str; 4] = ["/", "/healthz", "/readyz", "/health"];

/// Failures that are logged; when there are more, only their number is.
static FAILURES: Throttle = Throttle::new();

/// Lets a request through as that of its caller.
pub(super) async fn check(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    // A program around the gateway may know by other means who calls; nothing that comes over a
    // connection becomes an extension.
    if is_open(&gateway, &request) || request.extensions().get::<Caller>().is_some() {
        return next.run(request).await;
    }
    let peer = peer(&request);
    let secret = presented(request.headers());
    let path = request.uri().path();
    let identified = match signed_in(&gateway, request.headers(), secret.as_deref()).await {
        Ok(Some(key)) => gateway.admit(KeyLookup::Key(key.id, key.minimum_backend), true, path, peer),
        Ok(None) => gateway.identify(secret.as_deref(), path, peer).await,
        Err(problem) => return problem.into_response(),
    };
    match identified {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(AuthRejection::NoKey(why, error)) => unauthorized(why, &error),
        Err(AuthRejection::Weak(error)) => {
            let answer = (StatusCode::FORBIDDEN, axum::Json(&error));
            refused(answer.into_response(), &error)
        }
        Err(AuthRejection::Records(error)) => Problem::from(error).into_response(),
    }
}

/// Returns the key with which the console's user has signed in, if the console makes the request
/// and shows no other key.
async fn signed_in(
    gateway: &Gateway,
    headers: &HeaderMap,
    secret: Option<&str>,
) -> Result<Option<ApiKey>, Problem> {
    if secret.is_some() {
        return Ok(None);
    }
    match console::signed_in(gateway, headers).await? {
        Some(id) => Ok(gateway.keys.usable(&id).await?),
        None => Ok(None),
    }
}

/// Reason that a caller is not let in.
#[derive(Debug)]
pub enum AuthRejection {
    /// There is no key, or it opens nothing. The first value is the reason: `missing`, `unknown`,
    /// `expired` or `revoked`.
    NoKey(&'static str, ApiError),
    /// The key asks for a stronger wall than the one that is here.
    Weak(ApiError),
    /// The records cannot be read.
    Records(RecordsError),
}

impl From<AuthRejection> for Problem {
    fn from(why: AuthRejection) -> Self {
        let (status, error) = match why {
            AuthRejection::NoKey(_, error) => (StatusCode::UNAUTHORIZED, error),
            AuthRejection::Weak(error) => (StatusCode::FORBIDDEN, error),
            AuthRejection::Records(error) => return error.into(),
        };
        let code = error.code.unwrap_or_default();
        Self::new(status, ErrorKind::InvalidRequestError, &code, error.message)
    }
}

impl Gateway {
    /// Says who calls with a secret, or without one. A failure is counted, and logged with the path
    /// and the peer of the request.
    pub async fn identify(
        &self,
        secret: Option<&str>,
        path: &str,
        peer: Option<SocketAddr>,
    ) -> Result<Caller, AuthRejection> {
        let found = self.keys.find(secret.and_then(Secret::parse)).await;
        self.admit(
            found.map_err(AuthRejection::Records)?,
            secret.is_some(),
            path,
            peer,
        )
    }

    /// Lets a request through that needs no key, as one for an owner's sandbox that its ID or token opens.
    ///
    /// Returns whether the owner is still [usable](Self::is_usable). The connection of the request
    /// ends when that changes.
    pub async fn admits(&self, owner: &str) -> Result<bool, RecordsError> {
        let is_usable = self.is_usable(owner).await?;
        if is_usable {
            tracing::Span::current().record("owner", owner);
            note_owner(owner);
        }
        Ok(is_usable)
    }

    /// Judges what was found for a caller who has shown a secret, or none.
    fn admit(
        &self,
        found: KeyLookup,
        shown: bool,
        path: &str,
        peer: Option<SocketAddr>,
    ) -> Result<Caller, AuthRejection> {
        let required = self.requires_keys();
        let admitted = |caller: Caller| {
            tracing::Span::current().record("owner", &caller.owner);
            note_owner(&caller.owner);
            Ok(caller)
        };
        let (why, message) = match (found, shown) {
            (KeyLookup::Key(owner, minimum), _) => {
                self.engine.satisfies(minimum).map_err(AuthRejection::Weak)?;
                self.quotas.seen(&owner);
                return admitted(Caller { owner });
            }
            (KeyLookup::Open, _) if !required => return admitted(Caller::local()),
            (KeyLookup::Expired, _) => ("expired", "the API key has expired"),
            (KeyLookup::Revoked, _) => ("revoked", "the API key was revoked"),
            // LiteLLM knows a wrong key by the first words, which are OpenAI's.
            (_, true) => ("unknown", "Incorrect API key provided: it is not known here"),
            (_, false) => (
                "missing",
                "an API key is needed; send it as `Authorization: Bearer <key>`",
            ),
        };
        crate::metrics::auth_failed(why);
        if let Some(more) = FAILURES.pass() {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(
                target: crate::SECURITY,
                event = "auth_failed",
                why,
                peer,
                path,
                not_logged = more
            );
        }
        let error = ApiError {
            kind: ErrorKind::InvalidRequestError,
            code: Some("invalid_api_key".to_owned()),
            message: message.to_owned(),
            param: None,
        };
        Err(AuthRejection::NoKey(why, error))
    }
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

/// Some clients show nothing but the challenge. A request without a key gets no error there: it did
/// not know that there is one to send.
fn unauthorized(why: &str, error: &ApiError) -> Response {
    let challenge = match why {
        "missing" => HeaderValue::from_static(CHALLENGE),
        _ => HeaderValue::from_str(&format!(
            "{CHALLENGE}, error=\"invalid_token\", error_description=\"{}\"",
            error.message
        ))
        .unwrap_or(HeaderValue::from_static(CHALLENGE)),
    };
    let answer = (
        StatusCode::UNAUTHORIZED,
        [(WWW_AUTHENTICATE, challenge)],
        axum::Json(error),
    );
    refused(answer.into_response(), error)
}
