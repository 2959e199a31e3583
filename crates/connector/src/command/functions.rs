//! The functions that a program lists.

use std::collections::HashSet;

use cellblock_interpreter::connector::{Card, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::words::short_line;

/// Maximum number of functions.
const FUNCTIONS: usize = 512;
/// Maximum number of bytes of a function's name.
const NAME: usize = 128;

#[derive(Deserialize)]
struct WrittenFunction {
    name: String,
    #[serde(default)]
    description: String,
    /// Without it, there are no parameters.
    parameters: Option<Map<String, Value>>,
    returns: Option<Map<String, Value>>,
    effect: FetchEffect,
}

/// Reads the functions. Those that write are left out unless they are allowed, and returned as the
/// second list.
pub(super) fn read(
    answer: FetchAnswer,
    allow_writes: bool,
) -> Result<(Vec<Card>, Vec<String>), ConnectorError> {
    let wrong = |text: String| ConnectorError::new(ConnectorErrorKind::Parse, text);
    let FetchAnswer::Value(Value::Array(written)) = answer else {
        let text =
            "the command answered `functions` without a list of functions in `value`, of at most 4 MiB";
        return Err(wrong(text.to_owned()));
    };
    if written.len() > FUNCTIONS {
        let count = written.len();
        return Err(wrong(format!(
            "the command lists {count} functions; the maximum is {FUNCTIONS}"
        )));
    }
    let (mut cards, mut left_out, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for (place, function) in written.into_iter().enumerate() {
        let called = match function.get("name").and_then(Value::as_str) {
            Some(name) => format!("`{}`", short_line(name, NAME)),
            None => (place + 1).to_string(),
        };
        let written: WrittenFunction = serde_json::from_value(function).map_err(|error| {
            wrong(format!(
                "the command lists the function {called} with an invalid description: {error}; it must \
                 have `name` and `effect` (`reads` or `writes`), and may have `description`, `parameters` \
                 and `returns`"
            ))
        })?;
        if written.name.is_empty() || written.name.len() > NAME {
            return Err(wrong(format!(
                "the name of the function {called} must have 1 to {NAME} bytes"
            )));
        }
        if !names.insert(written.name.clone()) {
            return Err(wrong(format!(
                "the command lists the function {called} twice; give each its own name"
            )));
        }
        if written.effect == FetchEffect::Writes && !allow_writes {
            left_out.push(written.name);
            continue;
        }
        cards.push(written.card());
    }
    Ok((cards, left_out))
}

impl WrittenFunction {
    fn card(self) -> Card {
        let parameters = self.parameters.map(Value::Object);
        Card {
            name: self.name,
            description: self.description,
            parameters: parameters.unwrap_or_else(
                || json!({"type": "object", "properties": {}, "additionalProperties": false}),
            ),
            returns: self.returns.map(Value::Object),
            effect: self.effect,
            ..Card::default()
        }
    }
}
