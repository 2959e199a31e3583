//! Schemas of a document, as the JSON Schema that checks arguments.

use serde_json::{Map, Value, json};

/// Keys that say nothing of values, or that only OpenAPI knows.
const OTHERS: [&str; 8] = [
    "deprecated",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "readOnly",
    "writeOnly",
    "xml",
];

/// Returns a schema of OpenAPI 3.0 or 3.1 as one of JSON Schema. Those of 3.1 already are.
pub(super) fn standard(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut standard = Map::new();
    for (key, value) in fields {
        if OTHERS.contains(&key.as_str()) || key.starts_with("x-") || key == "nullable" {
            continue;
        }
        let value = match (key.as_str(), value) {
            // Names, not keys of a schema.
            ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
                let named = named
                    .iter()
                    .map(|(name, schema)| (name.clone(), self::standard(schema)));
                Value::Object(named.collect())
            }
            ("default" | "const" | "enum", value) => value.clone(),
            (_, Value::Object(_)) => self::standard(value),
            (_, Value::Array(items)) => items.iter().map(self::standard).collect(),
            (_, value) => value.clone(),
        };
        standard.insert(key.clone(), value);
    }
    // Of version 3.0, these say how `minimum` and `maximum` count.
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(counts)) = standard.get(exclusive).cloned() {
            standard.shift_remove(exclusive);
            let limit = standard.get(bound).cloned();
            if let Some(limit) = limit.filter(|_| counts) {
                standard.shift_remove(bound);
                standard.insert(exclusive.to_owned(), limit);
            }
        }
    }
    let standard = Value::Object(standard);
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        return json!({"anyOf": [standard, {"type": "null"}]});
    }
    standard
}

/// Returns the schema of a parameter that may be left out.
pub(super) fn optional(mut schema: Value) -> Value {
    let has = |schema: &Value, key: &str| schema.get(key).is_some();
    if has(&schema, "default") {
        return schema;
    }
    let simple = !["enum", "const", "anyOf", "oneOf", "allOf"]
        .iter()
        .any(|key| has(&schema, key));
    if simple && let Some(Value::String(kind)) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
        schema["default"] = Value::Null;
        return schema;
    }
    let about = schema.get("description").cloned();
    let mut wrapped = json!({"anyOf": [schema, {"type": "null"}], "default": null});
    if let Some(about) = about {
        wrapped["description"] = about;
    }
    wrapped
}

/// Returns whether values of a schema are lists, or objects.
pub(super) fn is(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        _ => kind == "object" && schema.get("properties").is_some(),
    }
}
