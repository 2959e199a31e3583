//! The arguments of a call in the form in which a model sends them.

use std::collections::BTreeMap;

use cellblock_settings::json::type_of;
use serde_json::Value;

use super::codes::{MISSING_CONTRACT, WRONG_TYPE};
use super::fields::{MOST_ITEMS, required, text, wrong_type};
use super::found::Mistakes;
use super::wording::{plain, quote};
use crate::rejection::Rejection;

const FIELDS: [&str; 4] = ["intent", "code", "inputs", "postProcessingContract"];
const CODE: &str = "the Python code of the cell, as one string";
const INTENT: &str = "a short text that says what the call is for";
const INPUTS: &str =
    "an object that maps local names to aliases, such as {\"prices\": \"get_price_history_1\"}";

/// Maximum number of characters of `intent`.
const LONGEST_INTENT: usize = 2000;
/// Maximum number of characters of `code`.
const LONGEST_CODE: usize = 200_000;

/// One call of the interpreter: code, its input data, and its declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivationCall {
    /// Purpose of the call, for a log; empty if the model omits it.
    pub intent: String,
    /// The Python code.
    pub code: String,
    /// Local names of aliases; empty if the aliases themselves are used.
    pub inputs: BTreeMap<String, String>,
    /// The given contract, unchecked; null if there is none.
    pub contract: Value,
}

impl DerivationCall {
    /// Parses `{intent, code, inputs, postProcessingContract}`. The content of the contract is
    /// checked by [`check_before`](super::check_before), which knows the aliases.
    pub fn read(arguments: &Value) -> Result<Self, Vec<Rejection>> {
        let mut found = Mistakes::default();
        let Value::Object(fields) = arguments else {
            let message = format!(
                "the arguments are {}; they must be an object with `intent`, `code`, `inputs` and \
                 `postProcessingContract`",
                type_of(arguments)
            );
            return Err(vec![Rejection::of_field(WRONG_TYPE, "arguments", message)]);
        };
        let intent = match fields.get("intent") {
            None | Some(Value::Null) => Some(String::new()),
            Some(Value::String(blank)) if blank.trim().is_empty() => Some(String::new()),
            Some(value) => text("intent", value, INTENT, LONGEST_INTENT, &mut found),
        };
        let code = required(fields, "code", CODE, &FIELDS, &mut found)
            .and_then(|value| text("code", value, CODE, LONGEST_CODE, &mut found));
        let inputs = inputs(fields.get("inputs").unwrap_or(&Value::Null), &mut found);
        let contract = fields.get("postProcessingContract").cloned().unwrap_or_default();
        if contract.is_null()
            && let Some(rejection) = misspelled(fields)
        {
            found.add(rejection);
        }
        match (intent, code, inputs, found.all()) {
            (Some(intent), Some(code), Some(inputs), found) if found.is_empty() => Ok(Self {
                intent,
                code,
                inputs,
                contract,
            }),
            (_, _, _, found) => Err(found),
        }
    }
}

/// A contract under another key would otherwise be reported as missing, which is less helpful.
fn misspelled(fields: &serde_json::Map<String, Value>) -> Option<Rejection> {
    let others = fields.keys().map(String::as_str);
    let others = others.filter(|key| !FIELDS.contains(key)).take(MOST_ITEMS);
    let key = super::wording::meant("postProcessingContract", others)?;
    let message = format!(
        "the call has no `postProcessingContract`; {} was given: rename it",
        quote(key)
    );
    Some(Rejection::of_field(
        MISSING_CONTRACT,
        "postProcessingContract",
        message,
    ))
}

fn inputs(value: &Value, found: &mut Mistakes) -> Option<BTreeMap<String, String>> {
    let entries = match value {
        Value::Null => return Some(BTreeMap::new()),
        Value::Object(entries) => entries,
        other => {
            found.add(wrong_type("inputs", INPUTS, other));
            return None;
        }
    };
    let mut inputs = BTreeMap::new();
    for (local, alias) in entries {
        match alias {
            Value::String(alias) => {
                inputs.insert(local.clone(), alias.clone());
            }
            other => found.add(wrong_type(
                &format!("inputs.{}", plain(local)),
                "the alias of an earlier tool result, as a string",
                other,
            )),
        }
    }
    Some(inputs)
}
