//! Reading the fields of a contract or a call, each of which may be missing or have any type.

use cellblock_settings::json::{STRING, type_of};
use serde_json::{Map, Value};

use super::codes::{EMPTY_FIELD, MISSING_FIELD, TOO_LONG, WRONG_TYPE};
use super::found::Mistakes;
use super::wording::{meant, plain, quote};
use crate::rejection::Rejection;

/// Maximum number of list items that are checked.
pub(super) const MOST_ITEMS: usize = 1000;

/// Reads a required field.
pub(crate) fn required<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    needs: &str,
    names: &[&str],
    found: &mut Mistakes,
) -> Option<&'a Value> {
    let value = object.get(name);
    if value.is_none() {
        // A key that is itself a field is not a misspelling of another one.
        let others = object.keys().map(String::as_str);
        let others = others.filter(|key| !names.contains(key)).take(MOST_ITEMS);
        let instead = match meant(name, others) {
            Some(key) => format!("; {} was given: rename it to `{name}`", quote(key)),
            None => String::new(),
        };
        let message = format!("`{name}` is missing{instead}; it must be {needs}");
        found.add(Rejection::of_field(MISSING_FIELD, name, message));
    }
    value
}

/// Reads a text that is not blank.
pub(crate) fn text(
    name: &str,
    value: &Value,
    needs: &str,
    longest: usize,
    found: &mut Mistakes,
) -> Option<String> {
    let Value::String(text) = value else {
        found.add(wrong_type(name, needs, value));
        return None;
    };
    if text.trim().is_empty() {
        let message = format!("`{name}` is empty; it must be {needs}");
        found.add(Rejection::of_field(EMPTY_FIELD, name, message));
        return None;
    }
    let chars = text.chars().count();
    if chars > longest {
        let message = format!("`{name}` has {chars} characters, the limit is {longest}; shorten it");
        found.add(Rejection::of_field(TOO_LONG, name, message));
        return None;
    }
    Some(text.clone())
}

/// Checks each string of a list with its index; returns `false` if there is no usable list.
pub(super) fn strings<'a>(
    name: &str,
    value: &'a Value,
    needs: &str,
    found: &mut Mistakes,
    mut each: impl FnMut(String, &'a str, &mut Mistakes),
) -> bool {
    let Value::Array(items) = value else {
        let mut rejection = wrong_type(name, needs, value);
        if let Value::String(only) = value {
            rejection.message = format!("{}; write [\"{}\"]", rejection.message, plain(only));
        }
        found.add(rejection);
        return false;
    };
    if items.len() > MOST_ITEMS {
        let message = format!(
            "`{name}` has {} entries, the limit is {MOST_ITEMS}; name only what the cell uses",
            items.len()
        );
        found.add(Rejection::of_field(TOO_LONG, name, message));
        return false;
    }
    for (place, item) in items.iter().enumerate() {
        let field = format!("{name}[{place}]");
        match item {
            Value::String(item) => each(field, item, found),
            other => found.add(wrong_type(&field, STRING, other)),
        }
    }
    true
}

/// Reports a field with the wrong type.
pub(crate) fn wrong_type(name: &str, needs: &str, value: &Value) -> Rejection {
    let message = format!("`{name}` is {}; it must be {needs}", type_of(value));
    Rejection::of_field(WRONG_TYPE, name, message)
}
