//! JSON Schemas of arguments and answers.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Of arguments, as they are read.
pub(super) fn read<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12())
}

/// Of an answer, as it is written: a field that is left out where there is nothing to say is not required.
pub(super) fn written<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    let mut schema: Value = SchemaGenerator::new(settings).into_root_schema_for::<T>().into();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
    }
    plain(&mut schema);
    schema
}

/// Without the formats of Rust's numbers, which no validator outside knows.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let rusty = fields
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| {
                    format.starts_with("uint")
                        || format.starts_with("int")
                        || matches!(format, "float" | "double")
                });
            if rusty {
                fields.remove("format");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
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
    plain(&mut schema);
    schema
}

/// Adds the handle of the session to an answer.
pub(super) fn telling_session(mut schema: Value) -> Value {
    schema["properties"]["session"] = json!({"type": "string", "description": "The session's handle."});
    plain(&mut schema);
    schema
}

/// As the protocol's types want it.
pub(super) fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(fields) => Arc::new(fields),
        _ => Arc::new(Map::new()),
    }
}
