//! Checks a tool's schema.
//!
//! Only its form is checked, once and from top to bottom: nothing that it references is fetched,
//! and none of its patterns is compiled, unlike in a validation library. The tool itself validates
//! its arguments.

use cellblock_settings::json::TYPES;
use serde_json::{Map, Value};

/// Maximum size of a schema as compact JSON, in bytes.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// Keywords whose value is a schema.
const SCHEMA: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is schemas by name.
const NAMED: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose value is a number.
const NUMBER: [&str; 11] = [
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
];

/// Reads a schema of arguments, which must be an object; the error names the problem and its
/// location.
pub(super) fn read(schema: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(mut schema) = schema else {
        return Err("its input schema is not a JSON object".to_owned());
    };
    match schema.get("type") {
        // Some servers omit it for tools without arguments.
        None => {
            schema.insert("type".to_owned(), "object".into());
        }
        Some(Value::String(name)) if name == "object" => {}
        Some(_) => return Err("its input schema is not of the type `object`".to_owned()),
    }
    let schema = Value::Object(schema);
    check(&schema, "")?;
    match schema {
        Value::Object(schema) => Ok(schema),
        _ => Err(String::new()),
    }
}

fn check(schema: &Value, place: &str) -> Result<(), String> {
    let schema = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(schema) => schema,
        _ => return wrong(place, "is neither an object nor a boolean"),
    };
    for (key, value) in schema {
        keyword(key, value, &format!("{place}/{key}"))?;
    }
    Ok(())
}

fn keyword(key: &str, value: &Value, place: &str) -> Result<(), String> {
    match key {
        "$ref" | "$dynamicRef" => match value.as_str() {
            Some(reference) if reference.starts_with('#') => Ok(()),
            Some(_) => wrong(place, "refers to another document, which is not fetched"),
            None => wrong(place, "is not a string"),
        },
        "type" if is_type(value) => Ok(()),
        "type" => wrong(place, "is not a JSON type"),
        "enum" if !value.is_array() => wrong(place, "is not an array"),
        "required" if !is_names(value) => wrong(place, "is not an array of names"),
        "pattern" | "format" | "title" | "description" if !value.is_string() => {
            wrong(place, "is not a string")
        }
        "items" => match value {
            Value::Array(schemas) => each(schemas, place),
            schema => check(schema, place),
        },
        key if SCHEMA.contains(&key) => check(value, place),
        key if LIST.contains(&key) => match value {
            Value::Array(schemas) => each(schemas, place),
            _ => wrong(place, "is not an array of schemas"),
        },
        key if NAMED.contains(&key) => match value {
            Value::Object(schemas) => schemas
                .iter()
                .try_for_each(|(name, schema)| check(schema, &format!("{place}/{name}"))),
            _ => wrong(place, "is not an object of schemas"),
        },
        key if NUMBER.contains(&key) && !value.is_number() => wrong(place, "is not a number"),
        _ => Ok(()),
    }
}

fn each(schemas: &[Value], place: &str) -> Result<(), String> {
    let mut places = (0..).map(|number| format!("{place}/{number}"));
    schemas
        .iter()
        .try_for_each(|schema| check(schema, &places.next().unwrap_or_default()))
}

fn is_type(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(types) => !types.is_empty() && types.iter().all(known),
        value => known(value),
    }
}

fn is_names(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|names| names.iter().all(Value::is_string))
}

fn wrong(place: &str, what: &str) -> Result<(), String> {
    let place = super::words::told(place, 200);
    Err(format!("its input schema is invalid: `{place}` {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_of_real_tools_are_schemas() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["a"], "x-mcp-header": "A"},
                "n": {"type": ["integer", "null"], "minimum": 0, "exclusiveMinimum": true, "default": 3},
                "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1},
                "any": true,
                "properties": {"anyOf": [{"type": "string"}, {"const": 5}]},
            },
            "required": ["n"],
            "additionalProperties": false,
            "$defs": {"item": {"type": "object", "properties": {"required": {"type": "boolean"}}}},
        });
        assert_eq!(read(schema.clone()).unwrap(), *schema.as_object().unwrap());
        assert_eq!(Value::Object(read(json!({})).unwrap()), json!({"type": "object"}));
    }

    #[test]
    fn invalid_schemas_are_reported_with_their_location() {
        for (schema, told) in [
            (json!("object"), "its input schema is not a JSON object"),
            (
                json!({"type": "string"}),
                "its input schema is not of the type `object`",
            ),
            (
                json!({"type": ["object", "null"]}),
                "its input schema is not of the type `object`",
            ),
            (
                json!({"properties": {"a": {"type": "str"}}}),
                "its input schema is invalid: `/properties/a/type` is not a JSON type",
            ),
            (
                json!({"properties": {"a": {"$ref": "https://evil.example/schema.json"}}}),
                "its input schema is invalid: `/properties/a/$ref` refers to another document, which is \
                 not fetched",
            ),
            (
                json!({"properties": ["a"]}),
                "its input schema is invalid: `/properties` is not an object of schemas",
            ),
            (
                json!({"required": "a"}),
                "its input schema is invalid: `/required` is not an array of names",
            ),
            (
                json!({"anyOf": [{}, 5]}),
                "its input schema is invalid: `/anyOf/1` is neither an object nor a boolean",
            ),
            (
                json!({"minProperties": "1"}),
                "its input schema is invalid: `/minProperties` is not a number",
            ),
        ] {
            assert_eq!(read(schema).unwrap_err(), told);
        }
    }
}
