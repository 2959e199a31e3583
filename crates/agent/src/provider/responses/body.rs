//! The body of a request to another server's Responses API.

use cellblock_interpreter::toolset::object;
use serde_json::{Map, Value, json};

use crate::provider::ModelRequest;
use crate::provider::request::{choice, plain};
use crate::wire::{Item, Part, TextFormat};

/// Builds the body that requests a stream.
pub(super) fn body(request: &ModelRequest) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| value.map(|value| body.insert(key.to_owned(), value));
    set("model", Some(json!(request.model)));
    set(
        "input",
        Some(plain(&request.items).iter().filter_map(item).collect()),
    );
    set("stream", Some(json!(true)));
    set("store", Some(json!(false)));
    set(
        "instructions",
        request.instructions.as_ref().map(|text| json!(text)),
    );
    set(
        "max_output_tokens",
        request.max_output_tokens.map(|count| json!(count)),
    );
    // It has no `stop`, which is refused before, and no `seed`.
    for (key, value) in object(json!(request.sampling)) {
        set(&key, (key != "seed").then_some(value));
    }
    let reasoning = shallow(json!(request.reasoning));
    set("reasoning", (reasoning != json!({})).then_some(reasoning));
    set(
        "prompt_cache_key",
        request.prompt_cache_key.as_ref().map(|key| json!(key)),
    );
    for (key, value) in object(json!(request.prompt_cache)) {
        set(&key, Some(value));
    }
    // Models without reasoning reject this, so it is only sent on request.
    let include = json!(["reasoning.encrypted_content"]);
    set("include", request.reasoning.sealed.then_some(include));
    let text = &request.text;
    let said = text.format != TextFormat::Text || text.verbosity.is_some();
    let mut form = json!(text);
    form["format"] = shallow(json!(text.format));
    set("text", said.then_some(form));
    let tools = offered(request);
    if !tools.is_empty() {
        set("tools", Some(Value::Array(tools)));
        let named = |name: &str| json!({"type": "function", "name": name});
        set("tool_choice", Some(choice(&request.tool_choice, named)));
        set(
            "parallel_tool_calls",
            (!request.parallel_tool_calls).then_some(json!(false)),
        );
    }
    Value::Object(body)
}

fn offered(request: &ModelRequest) -> Vec<Value> {
    let tools = request.offered();
    tools
        .map(|tool| {
            let mut form = json!(tool);
            form["type"] = json!("function");
            // Both must be present, and not every server accepts a missing schema.
            form["strict"] = json!(tool.strict.unwrap_or(false));
            if tool.parameters.is_none() {
                form["parameters"] = json!({"type": "object", "properties": {}});
            }
            shallow(form)
        })
        .collect()
}

/// Returns an item without data that only its own server knows: ids of stored objects, and
/// citations of files.
fn item(item: &Item) -> Option<Value> {
    let mut item = item.clone();
    if let Item::Reasoning(reasoning) = &mut item {
        // Servers reject reasoning that they have neither stored nor sealed, and its text together
        // with a sealed form.
        reasoning.encrypted_content.as_ref()?;
        reasoning.content = None;
    }
    if let Item::Message(message) = &mut item {
        for part in &mut message.content {
            if let Part::OutputText { annotations, .. } = part {
                annotations.clear();
            }
        }
    }
    let mut form = without_nulls(json!(item));
    if let Some(fields) = form.as_object_mut() {
        fields.remove("id");
        fields.remove("status");
    }
    Some(form)
}

/// Removes null keys from a value: every server understands missing keys.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Does the same for the outermost object only: schemas, which are nested, stay as their authors
/// wrote them.
fn shallow(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
