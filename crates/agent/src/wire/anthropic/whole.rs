//! A whole message, from the events of its stream.

use serde_json::{Map, Value, json};

/// Builds the message that events come to; `None` if they do not end as they have to.
pub fn whole(events: impl IntoIterator<Item = Value>) -> Option<Value> {
    let mut message = Value::Null;
    let mut content: Vec<Value> = Vec::new();
    let mut input = String::new();
    for mut event in events {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => message = event["message"].take(),
            "content_block_start" => content.push(event["content_block"].take()),
            "content_block_delta" => add(content.last_mut()?, &event["delta"], &mut input),
            "content_block_stop" => {
                let json = std::mem::take(&mut input);
                if !json.is_empty() {
                    content.last_mut()?["input"] = read(&json);
                }
            }
            "message_delta" => {
                if let (Some(message), Value::Object(delta)) =
                    (message.as_object_mut(), event["delta"].take())
                {
                    message.extend(delta);
                    message.insert("usage".to_owned(), event["usage"].take());
                }
            }
            "message_stop" => {
                message["content"] = json!(content);
                return Some(message);
            }
            _ => return None,
        }
    }
    None
}

fn add(block: &mut Value, delta: &Value, input: &mut String) {
    for key in ["text", "thinking", "signature"] {
        if let Some(more) = delta[key].as_str() {
            let before = block[key].as_str().unwrap_or_default();
            block[key] = Value::from(format!("{before}{more}"));
        }
    }
    input.push_str(delta["partial_json"].as_str().unwrap_or_default());
}

/// Parses the input of a call. Other text of the model is wrapped in an object.
fn read(json: &str) -> Value {
    match serde_json::from_str::<Map<String, Value>>(json) {
        Ok(input) => Value::Object(input),
        Err(_) => json!({"malformed_arguments": json}),
    }
}
