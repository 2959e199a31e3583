//! Descriptions of functions for code.

use cellblock_interpreter::connector::{Card, FetchEffect};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::recipe::OptionMistake;

/// Returns the mistakes in the names of functions, which are below a key.
pub(crate) fn name_mistakes<'a>(
    key: &'a str,
    names: impl Iterator<Item = &'a String>,
) -> impl Iterator<Item = OptionMistake> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let wrong = move |name: &&String| {
        !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.chars().all(fits)
    };
    names.filter(wrong).map(move |name| {
        let text = "the name of a function must have letters, digits and `_`, and begin with a letter";
        OptionMistake::new(&[key, name], text)
    })
}

/// Returns the mistakes in the parameters of a function.
pub(crate) fn mistakes(parameters: &IndexMap<String, Value>) -> impl Iterator<Item = OptionMistake> {
    let wrong = parameters.iter().filter(|(_, schema)| !schema.is_object());
    wrong.map(|(name, _)| {
        OptionMistake::new(
            &["parameters", name],
            "must be a JSON Schema, such as `{type: string}`",
        )
    })
}

/// Describes a function for code.
pub(crate) fn card(
    name: &str,
    description: &str,
    parameters: &IndexMap<String, Value>,
    effect: FetchEffect,
) -> Card {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in parameters {
        let mut schema = schema.clone();
        match schema.get("default") {
            None => required.push(name.clone()),
            // A default is checked like an argument.
            Some(Value::Null) => {
                if let Some(Value::String(kind)) = schema.get("type") {
                    schema["type"] = json!([kind, "null"]);
                }
            }
            Some(_) => {}
        }
        properties.insert(name.clone(), schema);
    }
    Card {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        effect,
        ..Card::default()
    }
}
