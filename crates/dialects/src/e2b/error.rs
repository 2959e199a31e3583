//! E2B's form of an error: `{"code": 404, "message": "…"}` with the same status. If a sandbox
//! does not run, the error also has its `sandboxId`.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::fault::{DialectFault, DialectFaultKind};

/// Characters of a value that an error repeats.
const MAX_SHOWN: usize = 100;

/// Reason that a request fails, and the sandbox that it did not find.
#[derive(Clone, Debug)]
pub(super) struct Problem(pub(super) DialectFault, Option<String>);

/// Answer of a route.
pub(super) type Answer<T> = Result<T, Problem>;

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self(DialectFault::new(status, message), None)
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// A request to a sandbox that has ended or is paused. E2B's clients look for these words, with this
    /// status, to learn that it does not run.
    pub(super) fn gone(id: &str, why: &str) -> Self {
        let fault = DialectFault::new(StatusCode::BAD_GATEWAY, format!("The sandbox was not found{why}"));
        Self(fault, Some(id.to_owned()))
    }

    /// Something of E2B's API that is not served, by its name.
    pub(super) fn not_served(what: &str, instead: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("{what} are not served by Cellblock; {instead}"),
        )
    }

    /// A field whose value this server would not enforce, with the reason and what to do instead.
    pub(super) fn unenforced(field: &str, value: &impl Serialize, why: &str) -> Self {
        let value = serde_json::to_string(value).unwrap_or_default();
        let value = shortened(&value);
        Self::invalid(format!("`{field}`: {value} is not supported by Cellblock: {why}"))
    }

    /// Returns the body of an answer.
    pub(super) fn body(&self) -> Value {
        let Self(fault, sandbox) = self;
        let mut body = json!({ "code": fault.status.as_u16(), "message": fault.message });
        if let Some(id) = sandbox {
            body["sandboxId"] = id.as_str().into();
        }
        body
    }

    /// A mistake of this program, which the log explains.
    pub(super) fn internal(action: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self(DialectFault::internal(action, error), None)
    }
}

/// Returns as much of a value as an error repeats.
pub(super) fn shortened(value: &str) -> String {
    value.chars().take(MAX_SHOWN).collect()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.0.status, Json(self.body())).into_response();
        if let Some(seconds) = self.0.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl<E: Into<DialectFault>> From<E> for Problem {
    fn from(error: E) -> Self {
        let mut fault: DialectFault = error.into();
        // As E2B has them: its clients take 502 with these words for the end of a sandbox.
        fault.status = match fault.kind {
            DialectFaultKind::Ended => {
                "The sandbox was not found: it has ended".clone_into(&mut fault.message);
                StatusCode::BAD_GATEWAY
            }
            DialectFaultKind::Sandbox => StatusCode::INTERNAL_SERVER_ERROR,
            DialectFaultKind::Space => StatusCode::INSUFFICIENT_STORAGE,
            _ => fault.status,
        };
        Self(fault, None)
    }
}
