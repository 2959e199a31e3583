//! JSON Schemas of arguments and answers.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Of arguments, as they are read.
pub(super) fn read<T: JsonSchema>() -> Value {
    portable(schema::<T>(SchemaSettings::draft2020_12()), &mut drop_null)
}

/// Of an answer, as it is written: a field that is left out where there is nothing to say is not required.
pub(super) fn written<T: JsonSchema>() -> Value {
    portable(
        schema::<T>(SchemaSettings::draft2020_12().for_serialize()),
        &mut split,
    )
}

/// Adds the handle of the session to arguments that do not know of sessions.
pub(super) fn with_session(mut schema: Value, required: bool) -> Value {
    let description = if required {
        "The session's handle."
    } else {
        "The session's handle; without one a new session is made, and the answer tells its handle."
    };
    schema["properties"]["session"] = json!({"type": "string", "description": description});
    if required {
        match &mut schema["required"] {
            Value::Array(names) => names.push("session".into()),
            none => *none = json!(["session"]),
        }
    }
    portable(schema, &mut drop_null)
}

/// Adds the handle of the session to an answer.
pub(super) fn telling_session(mut schema: Value) -> Value {
    schema["properties"]["session"] = json!({"type": "string", "description": "The session's handle."});
    portable(schema, &mut split)
}

/// As the protocol's types want it.
pub(super) fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(fields) => Arc::new(fields),
        _ => Arc::new(Map::new()),
    }
}

fn schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    let mut schema: Value = SchemaGenerator::new(settings).into_root_schema_for::<T>().into();
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

/// A field that may be left out is read as null, too; nothing is gained by telling.
fn drop_null(fields: &mut JsonObject) {
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
    struct Both {
        /// How many.
        #[serde(default)]
        count: Option<u64>,
    }

    #[test]
    fn what_may_be_null_is_plain_where_it_is_read_and_an_alternative_where_it_is_written() {
        let count = json!({"description": "How many.", "type": "integer", "minimum": 0, "default": null});
        assert_eq!(read::<Both>()["properties"]["count"], count);
        let written = written::<Both>();
        let count = &written["properties"]["count"];
        assert_eq!(count["description"], "How many.");
        assert_eq!(count["anyOf"][0]["type"], "integer");
        assert_eq!(count["anyOf"][1], json!({"type": "null"}));
    }
}
