//! The configuration that counts: every value, and where it comes from.

use std::fmt::Write as _;
use std::path::Path;

use super::node::{Node, Value};
use super::sections::mcp_servers::has;
use super::{LoadedConfig, yaml};
use crate::env_vars::{IMAGE, WITHOUT_NAMESPACES};

/// The column of what is said of a value.
const COLUMN: usize = 56;

impl LoadedConfig {
    /// YAML that says the same, each value with its origin.
    pub(crate) fn show(&self) -> String {
        let mut text = String::new();
        // Of settings that were read there is always a form, which keeps the order of providers.
        let form = serde_saphyr::to_string(&self.settings).unwrap_or_default();
        if let Ok(form) = yaml::parse(&form, Path::new("")) {
            self.entries(&form, &mut Vec::new(), &mut text);
        }
        text
    }

    fn entries(&self, node: &Node, path: &mut Vec<String>, into: &mut String) {
        let Value::Map(entries) = &node.value else { return };
        let indent = "  ".repeat(path.len());
        for (key, value) in entries {
            path.push(key.name.clone());
            if self.counts(path) {
                let name = text(&key.name);
                match &value.value {
                    Value::Map(inner) if !inner.is_empty() => {
                        let _ = writeln!(into, "{indent}{name}:");
                        self.entries(value, path, into);
                    }
                    written => {
                        let line = format!("{indent}{name}: {}", flow(written));
                        let _ = writeln!(into, "{line:COLUMN$} # {}", self.origin(path));
                    }
                }
            }
            path.pop();
        }
    }

    /// Whether a key has a meaning where it stands.
    fn counts(&self, path: &[String]) -> bool {
        let [first, name, key, ..] = path else { return true };
        if first == "mcp_servers" {
            let server = self.settings.mcp_servers.0.get(name);
            return server.is_none_or(|server| has(server, key));
        }
        let providers = &self.settings.providers.models;
        let provider = providers.iter().find(|(known, _)| known == name);
        first != "providers" || provider.is_none_or(|(_, provider)| provider.kind.has(key))
    }

    fn origin(&self, path: &[String]) -> String {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let written = self
            .tree
            .at(&path)
            .or_else(|| self.tree.at(super::same_as(&path)?));
        written.map_or_else(
            || default_origin(&path).to_owned(),
            |node| node.origin.to_string(),
        )
    }
}

/// Returns the source of a default: variables that all commands read set two of them.
fn default_origin(path: &[&str]) -> &'static str {
    match path {
        ["image"] if IMAGE.get().is_some() => IMAGE.name,
        ["protections", "without_namespaces"] if WITHOUT_NAMESPACES.is_on() => WITHOUT_NAMESPACES.name,
        _ => "default",
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(value) => text(value),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| flow(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entry = |(key, value): &(super::node::Key, Node)| {
                format!("{}: {}", text(&key.name), flow(&value.value))
            };
            let entries: Vec<_> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Text; plain words need no quotes, and quotes are those of JSON.
fn text(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

fn is_plain(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    first && text.chars().all(fits) && !reserved.contains(&text.to_lowercase().as_str())
}
