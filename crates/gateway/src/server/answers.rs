//! Common parts of all answers: errors in the API's form, and headers that keep browsers from guessing.

use std::sync::LazyLock;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::egress::inbound::ProgramAnswer;
use cellblock_interpreter::json_error;

use crate::body_limit;
use crate::description;
use crate::problem::Problem;

/// More than any refusal of the framework says.
const LONGEST: usize = 4096;

/// Headers that are set where a route sets no other.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    ),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Completes an answer. `max_body` is the limit of bodies that are not uploads, for the error that names it.
pub(super) async fn complete(State(max_body): State<usize>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if response.extensions().get::<ProgramAnswer>().is_some() {
        return response;
    }
    let response = body_limit::name(response, || body_limit::message(max_body)).await;
    let mut response = in_form(response).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// Puts what the framework says in plain text, or says by a status alone, into the API's form.
async fn in_form(response: Response) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let plain = match response.headers().get(CONTENT_TYPE) {
        Some(kind) => kind.as_bytes().starts_with(b"text/plain"),
        None => true,
    };
    if !plain {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, LONGEST).await.unwrap_or_default();
    let message = match String::from_utf8_lossy(&text).trim() {
        "" => of_status(status).to_owned(),
        text => json_error::describe(text),
    };
    let error = ApiError {
        kind: kind(status),
        code: Some(code(status).to_owned()),
        message,
        param: None,
    };
    let body = serde_json::to_vec(&error).unwrap_or_default();
    parts.headers.remove(CONTENT_LENGTH);
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(body))
}

const fn kind(status: StatusCode) -> ErrorKind {
    match status {
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::TooManyRequests,
        _ if status.as_u16() >= 500 => ErrorKind::ServerError,
        _ => ErrorKind::InvalidRequestError,
    }
}

const fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded",
        _ if status.as_u16() >= 500 => "server_error",
        _ => "invalid_request",
    }
}

const fn of_status(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "there is nothing at this address",
        StatusCode::METHOD_NOT_ALLOWED => {
            "this address does not answer to this method; `Allow` says which it does"
        }
        _ if status.as_u16() >= 500 => "the gateway could not answer",
        _ => "the request cannot be answered",
    }
}

/// The answer at an address below `/v1` that is not served.
pub(super) async fn unknown(method: Method, address: Uri) -> Problem {
    static SERVED: LazyLock<String> = LazyLock::new(|| description::roots().join(", "));
    let path = address.path();
    let message = format!(
        "there is nothing at this address: {method} {path}. Served are {}, and what is below them; GET \
         /openapi.json describes every route",
        *SERVED
    );
    Problem::missing(code(StatusCode::NOT_FOUND), message)
}

/// The answer where a route panicked.
#[expect(clippy::needless_pass_by_value, reason = "the layer gives it away")]
pub(super) fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text, "a route panicked");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let message = "the gateway failed; its log says more";
    Problem::new(status, ErrorKind::ServerError, "server_error", message).into_response()
}
