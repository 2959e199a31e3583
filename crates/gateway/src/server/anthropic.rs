//! Errors of all layers in Anthropic's form, for its clients: `{"type": "error", "error": {"type",
//! "message"}, "request_id"}`.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use cellblock_agent::wire::anthropic;
use serde_json::Value;

use super::RequestId;
use crate::anthropic::IsAnthropic;

/// More than any error has.
const LONGEST: usize = 64 << 10;
/// The header in which clients of this API look for a request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Puts errors into Anthropic's form, if the request is one of its API.
pub(super) async fn form(request: Request, next: Next) -> Response {
    if !IsAnthropic::of(request.uri().path(), request.headers()).0 {
        return next.run(request).await;
    }
    let id = request.extensions().get::<RequestId>().cloned();
    let mut response = next.run(request).await;
    if let Some(id) = id.as_ref().and_then(|id| HeaderValue::from_str(&id.0).ok()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, LONGEST).await.unwrap_or_default();
    let told: Value = serde_json::from_slice(&body).unwrap_or_default();
    if told["type"] == "error" {
        // Another gateway has answered.
        return Response::from_parts(parts, Body::from(body));
    }
    let message = told["error"]["message"].as_str();
    let message = message
        .or(status.canonical_reason())
        .unwrap_or("the request failed");
    let error = anthropic::error(status.as_u16(), message, id.as_ref().map(|id| &*id.0));
    parts.headers.remove(CONTENT_LENGTH);
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(error.to_string()))
}
