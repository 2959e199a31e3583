//! JSON Schemas of arguments and answers.

use cellblock_interpreter::toolset::{ToolDefinition, input_schema, object, output_schema};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::{Value, json};

/// Of arguments, as they are read.
pub(super) fn read<T: JsonSchema>() -> Value {
    portable(untitled(input_schema::<T>()), &mut drop_null)
}

/// Of an answer, as it is written.
pub(super) fn written<T: JsonSchema>() -> Value {
    portable(untitled(output_schema::<T>()), &mut split)
}

/// Adds the handle of the session to the arguments and the answer of a tool that does not know of sessions.
pub(super) fn in_session(mut tool: ToolDefinition) -> ToolDefinition {
    let description = if tool.resumes {
        "The session's handle."
    } else {
        "The session's handle; without one a new session is made, and the answer tells its handle."
    };
    let mut input = Value::Object(tool.input_schema);
    input["properties"]["session_id"] = json!({"type": "string", "description": description});
    if tool.resumes {
        match &mut input["required"] {
            Value::Array(names) => names.push("session_id".into()),
            none => *none = json!(["session_id"]),
        }
    }
    let mut output = untitled(json!(tool.output_schema));
    output["type"] = "object".into();
    output["properties"]["session_id"] = json!({"type": "string", "description": "The session's handle."});
    tool.input_schema = object(portable(input, &mut drop_null));
    tool.output_schema = Some(object(portable(output, &mut split)));
    tool
}

/// Lets a result be an error instead: clients check those, too.
pub(super) fn or_refused(mut output: JsonObject) -> JsonObject {
    let refused = json!({
        "type": "object",
        "properties": {"message": {"type": "string",
            "description": "Why the call did nothing, and how to fix it."}},
        "required": ["message"],
    });
    if let Some(Value::Array(alternatives)) = output.get_mut("anyOf") {
        alternatives.push(json!({"type": "object", "properties": {"error": refused}, "required": ["error"]}));
        return output;
    }
    let required = output.remove("required").unwrap_or_else(|| json!([]));
    if let Some(properties) = output.get_mut("properties").and_then(Value::as_object_mut) {
        let error = match properties.remove("error") {
            Some(failed) => json!({"anyOf": [failed, refused]}),
            None => refused,
        };
        properties.insert("error".to_owned(), error);
    }
    let alternatives = json!([{"required": required}, {"required": ["error"]}]);
    output.insert("anyOf".to_owned(), alternatives);
    output
}

fn untitled(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
    }
    schema
}

/// Without what some clients do not read.
fn portable(mut schema: Value, nulls: &mut impl FnMut(&mut JsonObject)) -> Value {
    each(&mut schema, &mut |fields| {
        drop_format(fields);
        nulls(fields);
    });
    schema
}

/// Does something to each object of a schema, the inner ones first.
fn each(schema: &mut Value, change: &mut impl FnMut(&mut JsonObject)) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| each(value, change));
            change(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        _ => {}
    }
}

/// Takes out the formats of Rust's numbers, which no validator outside knows.
fn drop_format(fields: &mut JsonObject) {
    let rusty = fields
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| {
            format.starts_with("uint") || format.starts_with("int") || matches!(format, "float" | "double")
        });
    if rusty {
        fields.remove("format");
    }
}

/// A field that may be left out is read as null, too. Frameworks make such a field required if its
/// schema says so.
fn drop_null(fields: &mut JsonObject) {
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
    if let Some(Value::Array(alternatives)) = fields.get_mut("anyOf") {
        alternatives.retain(|it| it["type"] != "null");
        if let [Value::Object(only)] = alternatives.as_mut_slice() {
            let only = std::mem::take(only);
            fields.remove("anyOf");
            for (name, value) in only {
                fields.entry(name).or_insert(value);
            }
        }
    }
    if let Some(only) = nullable(fields) {
        fields.insert("type".to_owned(), only);
    }
}

/// Writes a type or null as two alternatives: a list of types is more than some clients read.
fn split(fields: &mut JsonObject) {
    let Some(only) = nullable(fields) else { return };
    let mut whole = std::mem::take(fields);
    if let Some(description) = whole.remove("description") {
        fields.insert("description".to_owned(), description);
    }
    whole.insert("type".to_owned(), only);
    fields.insert("anyOf".to_owned(), json!([whole, {"type": "null"}]));
}

/// The type of what is either of that type or null.
fn nullable(fields: &JsonObject) -> Option<Value> {
    match fields.get("type")?.as_array()?.as_slice() {
        [only, null] if null == "null" => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct CountSchema {
        /// Number of items.
        #[serde(default)]
        count: Option<u64>,
    }

    #[test]
    fn what_may_be_null_is_plain_where_it_is_read_and_an_alternative_where_it_is_written() {
        let count = json!({"description": "Number of items.", "type": "integer", "minimum": 0});
        assert_eq!(read::<CountSchema>()["properties"]["count"], count);
        let written = written::<CountSchema>();
        let count = &written["properties"]["count"];
        assert_eq!(count["description"], "Number of items.");
        assert_eq!(count["anyOf"][0]["type"], "integer");
        assert_eq!(count["anyOf"][1], json!({"type": "null"}));
    }
}
