//! Code that a host runs in a session to publish one of its variables.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns a call of `publish_dataset` with these arguments; those that are null or an empty list
/// are left out.
pub fn publish_call(
    variable: &str,
    slug: &str,
    arguments: impl IntoIterator<Item = (&'static str, Value)>,
) -> String {
    let mut code = format!("publish_dataset({variable}, {}", json!(slug));
    for (name, value) in arguments {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            // Strings and lists of JSON are also those of Python, and writing to a string does not fail.
            let _ = write!(code, ", {name}={value}");
        }
    }
    code + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_the_call() {
        let code = publish_call(
            "df",
            "gdp",
            [
                ("title", json!("\"); import os #\n\\")),
                ("description", Value::Null),
                ("tags", json!([])),
                ("notes", json!(["a", "π"])),
            ],
        );
        assert_eq!(
            code,
            r#"publish_dataset(df, "gdp", title="\"); import os #\n\\", notes=["a","π"])"#
        );
    }
}
