//! Arguments as clients send them, turned into what tools read.

use rmcp::model::JsonObject;
use serde_json::Value;

/// The argument that names a session. Frameworks use `session` for themselves and drop it.
pub(crate) const SESSION: &str = "session_id";
/// Its earlier name.
pub(crate) const EARLIER: &str = "session";

/// Gives the handle its name, and removes what stands for an argument that was left out: null, and
/// an empty handle. Frameworks that require every argument send these.
pub(crate) fn normalize(arguments: &mut JsonObject, schema: &JsonObject) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|it| it == name))
    };
    if properties.contains_key(SESSION) {
        rename(arguments);
    }
    arguments.retain(|name, value| {
        let absent = value.is_null() || name == SESSION && *value == "";
        !absent || required(name)
    });
    for (name, value) in arguments {
        if let (Value::Object(fields), Some(Value::Object(schema))) = (value, properties.get(name)) {
            normalize(fields, schema);
        }
    }
}

/// Renames the handle. Two that differ are left for the tool to reject.
pub(crate) fn rename(arguments: &mut JsonObject) {
    let Some(earlier) = arguments.get(EARLIER) else {
        return;
    };
    let missing = arguments.get(SESSION).is_none_or(Value::is_null);
    if (missing || earlier.is_null() || arguments.get(SESSION) == Some(earlier))
        && let Some(earlier) = arguments.remove(EARLIER)
        && missing
    {
        arguments.insert(SESSION.to_owned(), earlier);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn normalized(given: Value) -> Value {
        let schema = json!({
            "properties": {
                "code": {"type": "string"},
                "result": {},
                "session_id": {"type": "string"},
                "contract": {"type": "object", "properties": {"reason": {"type": "string"}}},
            },
            "required": ["code", "result"],
        });
        let (Value::Object(mut given), Value::Object(schema)) = (given, schema) else {
            panic!("objects")
        };
        normalize(&mut given, &schema);
        Value::Object(given)
    }

    #[test]
    fn null_and_an_empty_handle_are_arguments_that_were_left_out() {
        let given = json!({"code": null, "result": null, "session_id": "", "timeout": null,
            "contract": {"reason": null}});
        assert_eq!(
            normalized(given),
            json!({"code": null, "result": null, "contract": {}})
        );
    }

    #[test]
    fn a_handle_is_accepted_by_its_earlier_name() {
        for given in [
            json!({"session": "s"}),
            json!({"session": "s", "session_id": null}),
            json!({"session": "s", "session_id": "s"}),
            json!({"session": null, "session_id": "s"}),
        ] {
            assert_eq!(normalized(given), json!({"session_id": "s"}));
        }
        let two = json!({"session": "s", "session_id": "t"});
        assert_eq!(normalized(two.clone()), two);
    }
}
