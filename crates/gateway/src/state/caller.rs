//! Who calls.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ErrorKind;

use crate::problem::Problem;

/// Who calls. What a caller makes belongs to its owner, and nobody else sees it.
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
