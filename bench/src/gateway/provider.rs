//! A provider of models on loopback, whose model's name says what it answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::programs::{CHART, SUM};

/// Content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelScript {
    /// Number of deltas.
    pub(crate) deltas: usize,
    /// The wait before each.
    pub(crate) pause: Duration,
    /// Bytes of each.
    pub(crate) size: usize,
    /// Code that is run before.
    pub(crate) code: Option<&'static str>,
}

/// Code that models run; the name of a model has its position.
const CODES: [Option<&str>; 3] = [None, Some(SUM), Some(CHART)];
/// Bytes of a delta that is as short as a model's.
const SHORT: usize = 20;

impl ModelScript {
    pub(crate) const fn text(deltas: usize, pause: Duration) -> Self {
        Self {
            deltas,
            pause,
            size: SHORT,
            code: None,
        }
    }

    /// Code, and one delta after it.
    pub(crate) const fn code(code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..Self::text(1, Duration::ZERO)
        }
    }

    /// The name of the model that answers so.
    pub(crate) fn model(self) -> String {
        let code = CODES.iter().position(|code| *code == self.code);
        let code = code.expect("a model runs code that has a position");
        let pause = self.pause.as_micros();
        format!("script-{}-{pause}-{}-{code}", self.deltas, self.size)
    }

    fn of(model: &str) -> Option<Self> {
        let mut parts = model.strip_prefix("script-")?.split('-');
        let mut number = || parts.next()?.parse::<u32>().ok();
        Some(Self {
            deltas: usize::try_from(number()?).ok()?,
            pause: Duration::from_micros(number()?.into()),
            size: usize::try_from(number()?).ok()?,
            code: *CODES.get(usize::try_from(number()?).ok()?)?,
        })
    }
}

/// Nanoseconds since this program first asked: a delta says when it was sent.
pub(crate) fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Serves until this program ends, and answers where.
pub(crate) async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("listen for requests to the model")?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/v1/chat/completions", post(answer));
    // It is served as long as the program runs, which is why nobody waits for it.
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn answer(Json(request): Json<Value>) -> Response {
    let Some(script) = request["model"].as_str().and_then(ModelScript::of) else {
        return axum::http::StatusCode::NOT_FOUND.into_response();
    };
    let ran = request["messages"]
        .as_array()
        .is_some_and(|messages| messages.iter().any(|message| message["role"] == "tool"));
    let (frames, finish) = match script.code.filter(|_| !ran) {
        Some(code) => (stream::iter([call(code)]).boxed(), "tool_calls"),
        None => (deltas(script).boxed(), "stop"),
    };
    let end = [chunk(&json!({}), Some(finish)), "data: [DONE]\n\n".to_owned()];
    let body = frames
        .chain(stream::iter(end))
        .map(Ok::<_, std::convert::Infallible>);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

fn call(code: &str) -> String {
    let arguments = json!({"code": code}).to_string();
    let function = json!({"name": "code_interpreter", "arguments": arguments});
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
    chunk(&json!({"tool_calls": [call]}), None)
}

fn deltas(script: ModelScript) -> impl stream::Stream<Item = String> {
    stream::unfold(0, move |sent| async move {
        if sent == script.deltas {
            return None;
        }
        if !script.pause.is_zero() {
            tokio::time::sleep(script.pause).await;
        }
        let content = format!("{:>width$}", clock(), width = script.size);
        Some((chunk(&json!({"content": content}), None), sent + 1))
    })
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "script",
        "choices": [choice],
    });
    format!("data: {chunk}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_determines_its_answers() {
        let script = ModelScript {
            code: Some(CHART),
            ..ModelScript::text(100, Duration::from_millis(2))
        };
        assert_eq!(script.model(), "script-100-2000-20-2");
        for code in CODES {
            let script = ModelScript { code, ..script };
            assert_eq!(ModelScript::of(&script.model()), Some(script));
        }
        assert_eq!(ModelScript::of("script-1-2-3-9"), None);
        assert_eq!(ModelScript::of("gpt"), None);
        assert_eq!(ModelScript::of("script-1-2"), None);
    }
}
