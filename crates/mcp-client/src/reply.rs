//! The data of a tool's result, for code that derives from it.

use cellblock_agent::ToolReply;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{scan, words};

/// Maximum length in characters of a tool's error message.
const FAILED: usize = 4000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallReply {
    #[serde(default)]
    result_type: Option<String>,
    #[serde(default)]
    content: Option<Vec<Map<String, Value>>>,
    #[serde(default, deserialize_with = "present")]
    structured_content: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
}

/// Distinguishes an explicit `null` from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a result: its structured content if any, else its text as JSON if that is an object or a
/// list, else its blocks.
pub(super) fn read(text: &RawValue, most_bytes: u64) -> Result<ToolReply, Failure> {
    scan::check(text.get(), most_bytes)?;
    let answer: CallReply = serde_json::from_str(text.get())
        .map_err(|error| Failure::unread("its result is malformed", error))?;
    match answer.result_type.as_deref() {
        None | Some("complete") => {}
        Some("input_required") => {
            return Err(unsupported(
                "requests input from a person, which is not supported here",
            ));
        }
        Some("task") => {
            return Err(unsupported(
                "turned the call into a task, which is not supported here",
            ));
        }
        Some(other) => {
            return Err(unsupported(&format!(
                "returned the unknown result type `{}`",
                words::told(other, 50)
            )));
        }
    }
    let blocks = answer.content.unwrap_or_default();
    if answer.is_error == Some(true) {
        return Ok(ToolReply::Failed(failed(
            &blocks,
            answer.structured_content.as_ref(),
        )));
    }
    if let Some(value) = answer.structured_content {
        return Ok(ToolReply::Result(value));
    }
    let mut values: Vec<_> = blocks.into_iter().map(|block| value(block, most_bytes)).collect();
    Ok(ToolReply::Result(match values.len() {
        0 => Value::Null,
        1 => values.remove(0),
        _ => Value::Array(values),
    }))
}

fn unsupported(what: &str) -> Failure {
    Failure::Unsupported {
        what: what.to_owned(),
    }
}

/// Converts a block to a value: text as itself, everything else as an object without the protocol's
/// metadata.
fn value(mut block: Map<String, Value>, most_bytes: u64) -> Value {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "text" {
        if let Some(Value::String(text)) = block.get_mut("text") {
            return data(std::mem::take(text), most_bytes);
        }
    } else if kind == "resource"
        && let Some(Value::Object(resource)) = block.remove("resource")
    {
        block.extend(resource);
    }
    for remark in ["_meta", "annotations", "icons"] {
        block.shift_remove(remark);
    }
    // Bytes have the same name from all sources.
    if let Some(bytes) = block.remove("blob") {
        block.insert("data".to_owned(), bytes);
    }
    Value::Object(block)
}

/// Returns the object or list in a text, or else the text.
fn data(text: String, most_bytes: u64) -> Value {
    if !text.trim_start().starts_with(['{', '[']) || scan::check(&text, most_bytes).is_err() {
        return Value::String(text);
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn failed(blocks: &[Map<String, Value>], structured: Option<&Value>) -> String {
    let texts: Vec<_> = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    let said = words::told_lines(&texts.join("\n"), FAILED);
    match structured {
        _ if !said.is_empty() => said,
        Some(value) if !value.is_null() => words::told(&value.to_string(), FAILED),
        _ => "the tool failed and did not say why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(result: &Value) -> Result<ToolReply, Failure> {
        read(&RawValue::from_string(result.to_string()).unwrap(), 32 << 20)
    }

    fn result(result: &Value) -> Value {
        match reply(result).unwrap() {
            ToolReply::Result(value) => value,
            ToolReply::Failed(text) => panic!("{text}"),
        }
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text, "annotations": {"priority": 1}})
    }

    #[test]
    fn structured_content_counts_before_the_text_that_repeats_it() {
        let both = json!({"content": [text("{\"a\": 1}")], "structuredContent": {"a": 1.0}});
        assert_eq!(result(&both), json!({"a": 1.0}));
        assert_eq!(
            result(&json!({"content": [], "structuredContent": null})),
            Value::Null
        );
        assert_eq!(
            result(&json!({"resultType": "complete", "structuredContent": [1]})),
            json!([1])
        );
    }

    #[test]
    fn text_is_data_where_it_is_an_object_or_a_list() {
        let of = |content: Value| result(&json!({"content": content}));
        assert_eq!(of(json!([text(" {\"a\": [1, 2]}\n")])), json!({"a": [1, 2]}));
        assert_eq!(of(json!([text("[1, 2]")])), json!([1, 2]));
        for plain in ["5", "\"x\"", "{a}", "[1, 2] and more", "", "null"] {
            assert_eq!(of(json!([text(plain)])), json!(plain));
        }
        let deep = "[".repeat(500) + &"]".repeat(500);
        assert_eq!(of(json!([text(&deep)])), json!(deep));
        assert_eq!(of(json!([text("a"), text("{}")])), json!(["a", {}]));
        assert_eq!(of(json!([])), Value::Null);
        assert_eq!(result(&json!({})), Value::Null);
    }

    #[test]
    fn bytes_and_links_are_objects() {
        let of = |content: Value| result(&json!({"content": [content]}));
        let picture = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
        let with_remarks = json!({"type": "image", "mimeType": "image/png", "data": "AAAA",
            "_meta": {"a": 1}, "annotations": {}});
        assert_eq!(of(with_remarks), picture);
        assert_eq!(
            of(
                json!({"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y",
                    "blob": "AAAA", "_meta": {}}})
            ),
            json!({"type": "resource", "uri": "a://b", "mimeType": "x/y", "data": "AAAA"})
        );
        assert_eq!(
            of(json!({"type": "resource", "resource": {"uri": "a://b", "text": "[1]"}})),
            json!({"type": "resource", "uri": "a://b", "text": "[1]"})
        );
        let link = json!({"type": "resource_link", "uri": "a://b", "name": "b"});
        assert_eq!(of(link.clone()), link);
    }

    #[test]
    fn a_failure_is_reported_in_the_tools_own_words() {
        let said = |answer: Value| match reply(&answer).unwrap() {
            ToolReply::Failed(text) => text,
            ToolReply::Result(value) => panic!("{value}"),
        };
        assert_eq!(
            said(json!({"isError": true, "content": [text("no\u{1b} such"), text("city")]})),
            "no  such\ncity"
        );
        assert_eq!(
            said(json!({"isError": true, "structuredContent": {"code": 5}})),
            "{\"code\":5}"
        );
        assert_eq!(
            said(json!({"isError": true})),
            "the tool failed and did not say why"
        );
        let long = said(json!({"isError": true, "content": [text(&"x".repeat(5000))]}));
        assert!(long.ends_with("x… (1000 characters more)"), "{long}");
    }

    #[test]
    fn unsupported_results_are_errors() {
        let told = |answer: Value| reply(&answer).unwrap_err().to_string();
        assert_eq!(
            told(json!({"resultType": "input_required", "inputRequests": {}})),
            "requests input from a person, which is not supported here"
        );
        assert_eq!(
            told(json!({"resultType": "task", "taskId": "1"})),
            "turned the call into a task, which is not supported here"
        );
        for wrong in [
            json!({"content": "x"}),
            json!({"content": [5]}),
            json!([1]),
            json!({"isError": "no"}),
        ] {
            assert!(matches!(reply(&wrong), Err(Failure::Malformed { .. })), "{wrong}");
        }
        let nested = format!(
            "{{\"structuredContent\": {}{}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        let nested = RawValue::from_string(nested).unwrap();
        assert!(matches!(read(&nested, 32 << 20), Err(Failure::TooDeep { .. })));
    }
}
