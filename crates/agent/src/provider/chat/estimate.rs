//! An estimate of a request's tokens: each family of models has its own tokenizer, which only its
//! server knows.

use serde_json::Value;

/// Characters per token in English text and in code.
const CHARACTERS: usize = 4;
/// Additional tokens per message: its role, start and end.
const MESSAGE: usize = 4;
/// Tokens of a picture: those of a square of 1024 pixels in OpenAI's models.
const PICTURE: usize = 765;

/// Estimates the tokens of a body for Chat Completions.
pub(super) fn estimate(body: &Value) -> u64 {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let said: usize = messages.iter().map(|message| MESSAGE + tokens(message)).sum();
    // Models also read the names and the types of a schema.
    let tools: usize = body.get("tools").map_or(0, |tools| of_text(&tools.to_string()));
    let format = body
        .get("response_format")
        .map_or(0, |format| of_text(&format.to_string()));
    u64::try_from(said + tools + format).unwrap_or(u64::MAX)
}

/// Estimates the tokens of the texts and pictures in a message.
fn tokens(value: &Value) -> usize {
    match value {
        Value::String(text) => of_text(text),
        Value::Array(parts) => parts.iter().map(tokens).sum(),
        Value::Object(part) if part.contains_key("image_url") => PICTURE,
        Value::Object(part) => part
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "role" | "type" | "id" | "tool_call_id"))
            .map(|(_, value)| tokens(value))
            .sum(),
        _ => 0,
    }
}

/// Letters of other scripts, especially Chinese and Japanese, take a token each rather than a
/// quarter of one.
fn of_text(text: &str) -> usize {
    let ascii = text.chars().filter(char::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(CHARACTERS) + others
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_pictures_and_tools_count() {
        let message = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        assert_eq!(estimate(&message(json!("eight ch"))), 4 + 2);
        assert_eq!(estimate(&message(json!("\u{4f60}\u{597d}"))), 4 + 2);
        let picture = json!([{"type": "image_url", "image_url": {"url": "x".repeat(4000)}},
            {"type": "text", "text": "look"}]);
        assert_eq!(estimate(&message(picture)), 4 + 765 + 1);
        let mut with = message(json!("x"));
        with["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
        assert_eq!(estimate(&with), 4 + 1 + 12);
        let call = json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_with_a_long_id", "type": "function",
                "function": {"name": "find", "arguments": "{\"a\": 1}"}},
        ]}]});
        assert_eq!(estimate(&call), 4 + 1 + 2);
    }
}
