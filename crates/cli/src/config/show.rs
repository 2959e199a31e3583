//! The configuration that counts: every value, and where it comes from.

use std::fmt::Write as _;

use serde_json::Value;

use super::Loaded;
use super::node::Node;

/// The column of what is said of a value.
const COLUMN: usize = 56;

impl Loaded {
    /// YAML that says the same, each value with its origin.
    pub(crate) fn show(&self) -> String {
        let mut text = String::new();
        // Of a configuration that was read there is always a JSON form: its keys are text.
        let value = serde_json::to_value(&self.settings).unwrap_or_default();
        if let Value::Object(sections) = &value {
            for (key, section) in sections {
                entry(key, section, 0, &mut vec![key.clone()], &self.tree, &mut text);
            }
        }
        text
    }
}

fn entry(key: &str, value: &Value, depth: usize, path: &mut Vec<String>, tree: &Node, into: &mut String) {
    let key = scalar(&Value::String(key.to_owned()));
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            let _ = writeln!(into, "{}{key}:", "  ".repeat(depth));
            for (name, value) in entries {
                path.push(name.clone());
                entry(name, value, depth + 1, path, tree, into);
                path.pop();
            }
        }
        value => {
            let line = format!("{}{key}: {}", "  ".repeat(depth), scalar(value));
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            let origin = tree
                .at(&path)
                .map_or_else(|| "default".to_owned(), |node| node.origin.to_string());
            let _ = writeln!(into, "{line:COLUMN$} # {origin}");
        }
    }
}

/// A value on one line. JSON is YAML; plain words need no quotes.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    first && text.chars().all(fits) && !reserved.contains(&text.to_lowercase().as_str())
}
