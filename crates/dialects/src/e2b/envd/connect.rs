//! The Connect protocol with JSON: single answers, and streams of messages with their length before each.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use cellblock_interpreter::Error;
use cellblock_interpreter::json_error;
use cellblock_interpreter::session::processes::ProcessError;
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::error::Problem;

const UNARY: &str = "application/json";
const STREAM: &str = "application/connect+json";
/// Flag of the last message of a stream.
const END: u8 = 2;
/// Flag of a message that is compressed.
const COMPRESSED: u8 = 1;
const HEAD: usize = 5;

/// An error with one of Connect's codes.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    code: &'static str,
    message: String,
}

/// A call's answer.
pub(super) type RpcResult<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    fn status(&self) -> StatusCode {
        match self.code {
            "invalid_argument" | "failed_precondition" => StatusCode::BAD_REQUEST,
            "not_found" => StatusCode::NOT_FOUND,
            "already_exists" => StatusCode::CONFLICT,
            "permission_denied" => StatusCode::FORBIDDEN,
            "unauthenticated" => StatusCode::UNAUTHORIZED,
            "resource_exhausted" => StatusCode::TOO_MANY_REQUESTS,
            "unimplemented" => StatusCode::NOT_IMPLEMENTED,
            "deadline_exceeded" => StatusCode::GATEWAY_TIMEOUT,
            "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.status(), Json(self.json())).into_response()
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let code = match problem.0.status.as_u16() {
            400 => "invalid_argument",
            401 => "unauthenticated",
            403 => "permission_denied",
            404 => "not_found",
            409 => "already_exists",
            429 | 507 => "resource_exhausted",
            501 => "unimplemented",
            502 | 503 => "unavailable",
            _ => "internal",
        };
        Self::new(code, problem.0.message)
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::new(fault.status(), fault.message)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match &error {
            Error::Process(
                ProcessError::NotFound { .. } | ProcessError::Ended { .. } | ProcessError::Lost { .. },
            ) => Self::not_found(error.to_string()),
            Error::Process(ProcessError::TooMany) => Self::new("resource_exhausted", error.to_string()),
            Error::Process(ProcessError::NotStarted { reason, .. }) => Self::invalid(reason.clone()),
            Error::Process(_) => Self::new("failed_precondition", error.to_string()),
            _ => Problem::from(error).into(),
        }
    }
}

/// Reads the message of a call with one.
pub(super) fn message<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> RpcResult<T> {
    let json = if is_stream(headers) {
        let mut rest = body.clone();
        take(&mut rest)?.ok_or_else(|| Fault::invalid("the message is not complete"))?
    } else {
        body.clone()
    };
    parse(&json)
}

/// Reads all messages of a client's stream that has ended.
pub(super) fn messages<T: DeserializeOwned>(body: &Bytes) -> RpcResult<Vec<T>> {
    let mut rest = body.clone();
    let mut all = Vec::new();
    while let Some(json) = take(&mut rest)? {
        all.push(parse(&json)?);
    }
    if rest.is_empty() {
        Ok(all)
    } else {
        Err(Fault::invalid("the last message is not complete"))
    }
}

fn parse<T: DeserializeOwned>(json: &Bytes) -> RpcResult<T> {
    let json: &[u8] = if json.is_empty() { b"{}" } else { json };
    serde_json::from_slice(json)
        .map_err(|error| Fault::invalid(format!("invalid message: {}", json_error::describe(&error))))
}

fn take(rest: &mut Bytes) -> RpcResult<Option<Bytes>> {
    let Some((head, _)) = rest.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [flags, length @ ..] = *head;
    if flags & COMPRESSED != 0 {
        return Err(Fault::new(
            "unimplemented",
            "compressed messages are not supported; send them as they are",
        ));
    }
    let length = u32::from_be_bytes(length) as usize;
    if rest.len() - HEAD < length {
        return Ok(None);
    }
    let _ = rest.split_to(HEAD);
    Ok(Some(rest.split_to(length)))
}

pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(STREAM))
}

/// Returns the answer to a call whose codec is not JSON.
pub(super) fn wrong_codec(headers: &HeaderMap) -> Option<Response> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default();
    if kind.starts_with(UNARY) || kind.starts_with(STREAM) {
        return None;
    }
    let message = format!("content type `{kind}` is not supported; use `{UNARY}` or `{STREAM}`");
    Some(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into_response())
}

/// Answers a call in the form that it has.
pub(super) fn answer(headers: &HeaderMap, called: RpcResult<Value>) -> Response {
    if is_stream(headers) {
        let (sender, messages) = mpsc::channel(1);
        let ended = called.map(|message| drop(sender.try_send(message)));
        drop(sender);
        return stream(messages, async move { ended });
    }
    match called {
        Ok(value) => Json(value).into_response(),
        Err(fault) => fault.into_response(),
    }
}

/// Answers with a stream of messages, and how it ended.
pub(super) fn stream(
    messages: mpsc::Receiver<Value>,
    ended: impl Future<Output = RpcResult<()>> + Send + 'static,
) -> Response {
    let messages = futures_util::stream::unfold(messages, |mut messages| async {
        let message = messages.recv().await?;
        Some((framed(0, &message), messages))
    });
    let end = futures_util::stream::once(async move {
        let end = match ended.await {
            Ok(()) => json!({}),
            Err(fault) => json!({ "error": fault.json() }),
        };
        framed(END, &end)
    });
    let body = Body::from_stream(messages.chain(end).map(Ok::<_, Infallible>));
    ([(CONTENT_TYPE, STREAM)], body).into_response()
}

fn framed(flags: u8, message: &Value) -> Bytes {
    let json = message.to_string();
    let mut frame = BytesMut::with_capacity(HEAD + json.len());
    frame.put_u8(flags);
    frame.put_u32(u32::try_from(json.len()).unwrap_or(u32::MAX));
    frame.put_slice(json.as_bytes());
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_another() {
        let mut body = BytesMut::from(&framed(0, &json!({"a": 1}))[..]);
        body.extend_from_slice(&framed(0, &json!({"a": 2})));
        let all: Vec<Value> = messages(&body.clone().freeze()).unwrap();
        assert_eq!(all, [json!({"a": 1}), json!({"a": 2})]);
        body.truncate(body.len() - 1);
        assert!(messages::<Value>(&body.freeze()).is_err());
        let compressed = framed(COMPRESSED, &json!({}));
        assert_eq!(messages::<Value>(&compressed).unwrap_err().code, "unimplemented");
    }
}
