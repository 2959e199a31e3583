//! Chat completions on the wire, as chunks or as a whole.

use serde_json::{Map, Value, json};

use super::error::{ApiError, ErrorKind, Fields};
use super::pieces::Piece;
use super::response::TokenUsage;

/// The fields that all chunks of a completion share.
#[derive(Clone, Debug)]
pub struct Completion {
    /// `chatcmpl-…`.
    pub id: String,
    /// Creation time in seconds since 1970.
    pub created: u64,
    /// The model, as the client named it.
    pub model: String,
    /// Whether a stream includes the usage.
    pub include_usage: bool,
}

impl Completion {
    /// Formats a piece as frames of a `text/event-stream`.
    pub fn frames(&self, piece: Piece) -> String {
        let mut usage = None;
        let (delta, finish) = match piece {
            Piece::Begin => (json!({"role": "assistant", "content": "", "refusal": null}), None),
            Piece::Text(text) => (json!({"content": text}), None),
            Piece::Refusal(text) => (json!({"refusal": text}), None),
            Piece::Reasoning(text) => (json!({"reasoning_content": text}), None),
            Piece::Call { index, id, name } => {
                (json!({"tool_calls": [call(Some(index), &id, &name, "")]}), None)
            }
            Piece::Arguments { index, delta } => {
                let call = json!({"index": index, "function": {"arguments": delta}});
                (json!({"tool_calls": [call]}), None)
            }
            Piece::Annotations(annotations) => (json!({"annotations": annotations}), None),
            Piece::Finish { reason, usage: used } => {
                usage = Some(used);
                (json!({}), Some(reason))
            }
            Piece::Failed(error) => return frame(&json!({"error": json!(Fields::from(&error))})),
        };
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        let mut chunk = self.object("chat.completion.chunk", &json!([choice]));
        if !self.include_usage {
            return frame(&chunk);
        }
        chunk["usage"] = Value::Null;
        let mut frames = frame(&chunk);
        if let Some(usage) = usage {
            chunk["choices"] = json!([]);
            chunk["usage"] = told(usage);
            frames += &frame(&chunk);
        }
        frames
    }

    /// Builds a whole completion from its pieces.
    pub fn whole(&self, pieces: impl IntoIterator<Item = Piece>) -> Result<Value, ApiError> {
        let mut texts: Map<String, Value> = Map::new();
        let mut add = |key: &str, text: &str| match texts.get_mut(key) {
            Some(Value::String(before)) => before.push_str(text),
            _ => {
                texts.insert(key.to_owned(), json!(text));
            }
        };
        let mut calls: Vec<(String, String, String)> = Vec::new();
        let mut message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
        let mut ended = None;
        for piece in pieces {
            match piece {
                Piece::Begin => {}
                Piece::Text(text) => add("content", &text),
                Piece::Refusal(text) => add("refusal", &text),
                Piece::Reasoning(text) => add("reasoning_content", &text),
                Piece::Call { id, name, .. } => calls.push((id, name, String::new())),
                Piece::Arguments { index, delta } => {
                    if let Some((.., arguments)) = calls.get_mut(index) {
                        arguments.push_str(&delta);
                    }
                }
                Piece::Annotations(annotations) => message["annotations"] = json!(annotations),
                Piece::Finish { reason, usage } => ended = Some((reason, usage)),
                Piece::Failed(error) => return Err(error),
            }
        }
        let Some((reason, usage)) = ended else {
            return Err(ApiError {
                kind: ErrorKind::ServerError,
                code: Some("server_error".to_owned()),
                message: "the gateway is stopping".to_owned(),
                param: None,
            });
        };
        for (key, text) in texts {
            message[key] = text;
        }
        if !calls.is_empty() {
            let calls = calls
                .iter()
                .map(|(id, name, arguments)| call(None, id, name, arguments));
            message["tool_calls"] = calls.collect();
        }
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
        let mut whole = self.object("chat.completion", &json!([choice]));
        whole["usage"] = told(usage);
        Ok(whole)
    }

    fn object(&self, object: &str, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

fn call(index: Option<usize>, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    call
}

fn told(usage: TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.input_tokens_details.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.output_tokens_details.reasoning_tokens},
    })
}

fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}
