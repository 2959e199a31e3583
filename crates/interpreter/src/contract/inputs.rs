//! Checks a call's local names for aliases.

use std::collections::BTreeMap;

use super::codes::{INPUTS_REQUIRED, INVALID_NAME, NAME_TAKEN, RESERVED_NAME, TOO_LONG};
use super::fields::MOST_ITEMS;
use super::found::Mistakes;
use super::wording::{plain, quote, unknown_alias, with_aliases};
use super::{ContractPolicy, KnownAliases, is_identifier, reserved};
use crate::rejection::Rejection;

/// Checks every entry: its name, then its alias.
pub(super) fn check(
    inputs: &BTreeMap<String, String>,
    known: &KnownAliases,
    policy: &ContractPolicy,
    found: &mut Mistakes,
) {
    if inputs.is_empty() && policy.require_inputs {
        let message = "`inputs` is empty; it must map at least one local name to the alias of an earlier \
                       tool result, such as {\"prices\": \"get_price_history_1\"}";
        let rejection = Rejection::of_field(INPUTS_REQUIRED, "inputs", message);
        found.add(with_aliases(rejection, "", known));
    }
    if inputs.len() > MOST_ITEMS {
        let message = format!(
            "`inputs` has {} entries, the limit is {MOST_ITEMS}; name only what the cell uses",
            inputs.len()
        );
        found.add(Rejection::of_field(TOO_LONG, "inputs", message));
        return;
    }
    for (local, alias) in inputs {
        let field = format!("inputs.{}", plain(local));
        if let Some(rejection) = misnamed(&field, local, alias, known) {
            found.add(rejection);
        }
        if !known.contains(alias) {
            found.add(unknown_alias(field, alias, known));
        }
    }
}

fn misnamed(field: &str, local: &str, alias: &str, known: &KnownAliases) -> Option<Rejection> {
    let quoted = quote(local);
    let (code, message) = if !is_identifier(local) {
        let message = format!(
            "the local name {quoted} is not a valid Python identifier; use letters a-z, digits and \
             underscores, not a digit first, at most 128 characters, such as `{}`",
            cleaned(local)
        );
        (INVALID_NAME, message)
    } else if let Some(reserved) = reserved(local) {
        let message = format!(
            "the local name {quoted} is {}; choose another one, such as `{local}_data`",
            reserved.describe()
        );
        (RESERVED_NAME, message)
    } else if known.contains(local) && local != alias {
        let message = format!(
            "the local name {quoted} is itself the alias of another tool result and would hide it; choose \
             another name"
        );
        (NAME_TAKEN, message)
    } else {
        return None;
    };
    Some(Rejection::of_field(code, field, message))
}

/// Returns a similar name that is a valid Python identifier.
fn cleaned(local: &str) -> String {
    let word = |character: char| {
        if character.is_ascii_alphanumeric() {
            character
        } else {
            '_'
        }
    };
    let cleaned: String = local.chars().take(40).map(word).collect();
    let cleaned = cleaned.trim_matches('_');
    match cleaned.chars().next() {
        None => "source".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("source_{cleaned}"),
        Some(_) if reserved(cleaned).is_some() => format!("{cleaned}_data"),
        Some(_) => cleaned.to_owned(),
    }
}
