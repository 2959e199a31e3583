//! Callers.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ErrorKind;

use crate::keys::KeyLookup;
use crate::problem::Problem;
use crate::records::RecordsError;
use crate::state::Gateway;

/// Caller of a request. What a caller makes belongs to its owner, and nobody else sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Owner of the caller's objects: the id of a key, or `local` if no keys are required.
    pub owner: String,
}

/// Owner of everything in a gateway without keys.
const LOCAL: &str = "local";

impl Caller {
    /// The one caller of a gateway without keys.
    pub fn local() -> Self {
        let owner = LOCAL.to_owned();
        Self { owner }
    }

    /// Whether an owner is the one of a gateway without keys.
    pub(crate) fn is_local(owner: &str) -> bool {
        owner == LOCAL
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        // A route that forgot to ask who calls is closed to everybody.
        parts.extensions.get().cloned().ok_or_else(|| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let message = "nobody has said who calls";
            Problem::new(status, ErrorKind::ServerError, "server_error", message).into_response()
        })
    }
}

/// A caller who may manage the server.
#[derive(Debug)]
pub(crate) struct Administrator(pub(crate) Caller);

impl FromRequestParts<Gateway> for Administrator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Response> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        match administers(gateway, &caller).await {
            Ok(true) => Ok(Self(caller)),
            Ok(false) => {
                let message = "this is only for administrators; the operator makes a key that is one's \
                               with `cellblock key create NAME --admin`";
                let kind = ErrorKind::InvalidRequestError;
                Err(
                    Problem::new(StatusCode::FORBIDDEN, kind, "not_an_administrator", message)
                        .into_response(),
                )
            }
            Err(error) => Err(Problem::from(error).into_response()),
        }
    }
}

async fn administers(gateway: &Gateway, caller: &Caller) -> Result<bool, RecordsError> {
    // Without keys, everybody on this machine may do everything.
    if Caller::is_local(&caller.owner) && gateway.keys.find(None).await? == KeyLookup::Open {
        return Ok(true);
    }
    let key = gateway.keys.usable(&caller.owner).await?;
    Ok(key.is_some_and(|key| key.admin))
}
