//! Descriptions of functions for code.

use cellblock_interpreter::connector::{Card, FetchEffect};
use serde_json::{Map, Value, json};

use crate::mistake::OptionMistake;
use crate::options::FunctionOptions;

/// Returns the mistakes in the parameters of a function.
pub(crate) fn mistakes(options: &FunctionOptions) -> impl Iterator<Item = OptionMistake> {
    let wrong = options
        .parameters
        .iter()
        .filter(|(_, schema)| !schema.is_object());
    wrong.map(|(name, _)| {
        OptionMistake::new(
            &["parameters", name],
            "must be a JSON Schema, such as `{type: string}`",
        )
    })
}

/// Describes a function for code.
pub(crate) fn card(name: &str, options: &FunctionOptions, effect: FetchEffect) -> Card {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in &options.parameters {
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
        description: options.description.clone(),
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
