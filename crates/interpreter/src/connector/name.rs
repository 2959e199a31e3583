//! Names of connectors and functions in code.

use std::collections::HashSet;

use crate::contract::{ReservedReason, is_identifier, reserved};

/// Maximum number of characters of a function's name, before a number that makes it unique.
const CHARS: usize = 100;

/// Checks a connector's name; the error continues a sentence that starts with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    if !is_identifier(name) {
        return Err(
            "cannot be a name in code; use letters, digits and `_`, and begin with a letter".to_owned(),
        );
    }
    match reserved(name) {
        Some(reserved) => Err(format!("is {}; choose another name", reserved.describe())),
        None if name.starts_with('_') => Err("cannot begin with `_`; choose another name".to_owned()),
        None => Ok(()),
    }
}

/// Returns a name for a function that Python can use as an attribute, and that is not taken.
pub(super) fn function(name: &str, taken: &mut HashSet<String>) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut chosen: String = name.chars().map(word).take(CHARS).collect();
    chosen.drain(..chosen.len() - chosen.trim_start_matches('_').len());
    if chosen.is_empty() || chosen.starts_with(|first: char| first.is_ascii_digit()) {
        chosen.insert_str(0, "f_");
    }
    if reserved(&chosen) == Some(ReservedReason::Keyword) {
        chosen.push('_');
    }
    let numbered = (2..).map(|number: u32| format!("{chosen}_{number}"));
    let mut free = std::iter::once(chosen.clone()).chain(numbered);
    let free = free.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}
