//! Anthropic's Messages API: the loop of the Responses API behind another form.

mod clients;
mod code;
mod commands;
mod files;
mod models;
mod programmatic;
mod refused;
mod skills;

use serde_json::{Value, json};

use crate::support::Server;

/// A request of a message.
pub(super) fn body(fields: &Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 1000});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    if body["messages"].is_null() {
        body["messages"] = user("go");
    }
    body
}

pub(super) fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// Code execution of a version.
pub(super) fn tool(version: &str) -> Value {
    json!({"type": format!("code_execution_{version}"), "name": "code_execution"})
}

/// A message that has to be good.
pub(super) async fn ask(server: &Server, fields: Value) -> Value {
    server.post("messages", &body(&fields)).await.ok()
}

/// The events of a message, each named as its data is.
pub(super) async fn stream(server: &Server, fields: Value) -> Vec<Value> {
    let mut body = body(&fields);
    body["stream"] = json!(true);
    let request = server.request("POST", "messages").body(body.to_string());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.unwrap();
    assert!(text.ends_with("\n\n"), "{text}");
    let frames = text.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once("\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"]);
        event
    });
    frames.collect()
}

/// The message that events come to, which have to be in the API's order: one block at a time.
pub(super) fn assembled(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    assert_eq!(message["stop_reason"], Value::Null);
    let mut content: Vec<Value> = Vec::new();
    let mut open = false;
    let mut input = String::new();
    for event in &events[1..] {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert!(!open && event["index"] == content.len(), "{events:?}");
                content.push(event["content_block"].clone());
                open = true;
            }
            "content_block_delta" => {
                assert!(open && event["index"] == content.len() - 1, "{events:?}");
                let (block, delta) = (content.last_mut().unwrap(), &event["delta"]);
                match delta["type"].as_str().unwrap() {
                    "input_json_delta" => input += delta["partial_json"].as_str().unwrap(),
                    kind => {
                        let key = kind.strip_suffix("_delta").unwrap();
                        let more = delta[key].as_str().unwrap();
                        block[key] = json!(block[key].as_str().unwrap().to_owned() + more);
                    }
                }
            }
            "content_block_stop" => {
                assert!(open && event["index"] == content.len() - 1, "{events:?}");
                open = false;
                let json = std::mem::take(&mut input);
                if !json.is_empty() {
                    content.last_mut().unwrap()["input"] = serde_json::from_str(&json).unwrap();
                }
            }
            "message_delta" => {
                for (key, value) in event["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => assert_eq!(Some(event), events.last()),
            other => panic!("{other}: {events:?}"),
        }
    }
    assert!(!open, "{events:?}");
    message["content"] = json!(content);
    message
}

/// The types of a message's blocks.
pub(super) fn kinds(message: &Value) -> Vec<&str> {
    let content = message["content"].as_array().unwrap();
    content
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect()
}

/// The blocks of a type.
pub(super) fn blocks<'a>(message: &'a Value, kind: &str) -> Vec<&'a Value> {
    let content = message["content"].as_array().unwrap();
    content.iter().filter(|block| block["type"] == kind).collect()
}

/// The same without what differs from answer to answer.
pub(super) fn plain(message: &Value) -> Value {
    let mut plain = message.clone();
    plain["id"] = Value::Null;
    plain["container"] = Value::Null;
    for block in plain["content"].as_array_mut().unwrap() {
        for key in ["id", "tool_use_id"] {
            if let Some(id) = block.get_mut(key) {
                *id = Value::Null;
            }
        }
    }
    plain
}

/// A conversation that goes on after a message.
pub(super) fn after(message: &Value, content: &Value) -> Value {
    json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": content},
    ])
}
