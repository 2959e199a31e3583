//! Texts with `{{ secrets.NAME }}` and `{{ parameters.NAME }}`, and paths with `{NAME}`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// Bytes that are encoded in a part of a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Secret(String),
    Parameter(String),
}

/// A text in which values are inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<TemplatePart>);

impl Template {
    /// Reads the text of a query parameter or a header.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        Self::read(text, ("{{", "}}"), |name| {
            let (from, name) = name.split_once('.')?;
            match from.trim() {
                "secrets" => Some(TemplatePart::Secret(name.trim().to_owned())),
                "parameters" => Some(TemplatePart::Parameter(name.trim().to_owned())),
                _ => None,
            }
        })
        .ok_or_else(|| {
            "must have `{{ secrets.NAME }}` or `{{ parameters.NAME }}` between its braces".to_owned()
        })
    }

    /// Reads a path, in which each `{NAME}` is a parameter.
    pub(crate) fn path(text: &str) -> Result<Self, String> {
        if text.contains(['?', '#', '\\']) || !text.starts_with('/') {
            return Err("must be a path that starts with `/`, without `?`, `#` and `\\`".to_owned());
        }
        if text.split('/').any(|part| matches!(part, "." | "..")) {
            return Err("must not have `.` or `..` as a part".to_owned());
        }
        Self::read(text, ("{", "}"), |name| {
            Some(TemplatePart::Parameter(name.to_owned()))
        })
        .ok_or_else(|| "has a `{` without a `}`".to_owned())
    }

    fn read(
        text: &str,
        (open, close): (&str, &str),
        part: impl Fn(&str) -> Option<TemplatePart>,
    ) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            let (inside, after) = after.split_once(close)?;
            parts.push(TemplatePart::Text(before.to_owned()));
            parts.push(part(inside.trim())?);
            rest = after;
        }
        parts.push(TemplatePart::Text(rest.to_owned()));
        parts.retain(|part| *part != TemplatePart::Text(String::new()));
        Some(Self(parts))
    }

    /// Returns the parameters that it inserts.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Parameter(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns the secrets that it inserts.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Secret(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Replaces secrets by their values.
    pub(crate) fn with_secrets(self, value: impl Fn(&str) -> String) -> Self {
        let parts = self.0.into_iter().map(|part| match part {
            TemplatePart::Secret(name) => TemplatePart::Text(value(&name)),
            other => other,
        });
        Self(parts.collect())
    }

    /// Returns the text, or nothing if all of it is missing arguments.
    pub(crate) fn text(&self, arguments: &Map<String, Value>) -> Option<String> {
        let values: Vec<_> = self.0.iter().map(|part| part.value(arguments)).collect();
        if !values.is_empty() && values.iter().all(Option::is_none) {
            return None;
        }
        Some(values.into_iter().flatten().collect())
    }

    /// Returns the path. Each argument stays within its part; the error says which cannot.
    pub(crate) fn segments(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let mut path = String::new();
        for part in &self.0 {
            let TemplatePart::Parameter(name) = part else {
                path += &part.value(arguments).unwrap_or_default();
                continue;
            };
            let value = part.value(arguments).unwrap_or_default();
            // Servers differ in when they decode these, so that encoding does not keep them in their part.
            if value.is_empty() || value.contains(['/', '\\']) || value.contains(char::is_control) {
                return Err(format!(
                    "`{name}` is a part of the path, so it must not be empty or have `/`, `\\` \
                     or control characters"
                ));
            }
            path.extend(utf8_percent_encode(&value, ENCODED));
            if value.starts_with('.') && path.rsplit('/').next().is_some_and(is_dots) {
                return Err(format!(
                    "`{name}` is a part of the path, so it must not be `.` or `..`"
                ));
            }
        }
        if path.split('/').any(is_dots) {
            return Err("the arguments make `.` or `..` a part of the path".to_owned());
        }
        Ok(path)
    }
}

fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}

impl TemplatePart {
    fn value(&self, arguments: &Map<String, Value>) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Secret(_) => None,
            Self::Parameter(name) => plain(arguments.get(name)?),
        }
    }
}

/// Returns a value as the text of a parameter; null is none.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: &Value) -> Map<String, Value> {
        Map::from_iter([("id".to_owned(), value.clone())])
    }

    #[test]
    fn arguments_of_a_path_stay_within_their_part() {
        let path = Template::path("/a/{id}/b").unwrap();
        for (value, expected) in [
            (json!("x y?&#%"), "/a/x%20y%3F%26%23%25/b"),
            (json!(7), "/a/7/b"),
            (json!("v1..2"), "/a/v1..2/b"),
            (json!("é"), "/a/%C3%A9/b"),
        ] {
            assert_eq!(path.segments(&arguments(&value)).unwrap(), expected);
        }
        for value in [
            json!(".."),
            json!("."),
            json!("../x"),
            json!("a/b"),
            json!("a\\b"),
            json!("a\nb"),
            json!(""),
            json!(null),
        ] {
            let error = path.segments(&arguments(&value)).unwrap_err();
            assert!(error.contains("`id` is a part of the path"), "{error}");
        }
        // Two that are harmless alone.
        let path = Template::path("/a/{id}{id}").unwrap();
        assert!(path.segments(&arguments(&json!("."))).is_err());
        let path = Template::path("/a/.{id}").unwrap();
        assert!(path.segments(&arguments(&json!("."))).is_err());
    }

    #[test]
    fn values_are_inserted_once_and_never_read_as_templates() {
        let template = Template::new("a {{secrets.key}} {{ parameters.id }}").unwrap();
        let template = template.with_secrets(|_| "{{ parameters.id }}".to_owned());
        assert_eq!(
            template.text(&arguments(&json!("{{ secrets.key }}"))).unwrap(),
            "a {{ parameters.id }} {{ secrets.key }}"
        );
        let template = Template::new("{{ parameters.id }}").unwrap();
        assert_eq!(template.text(&arguments(&json!(null))), None);
        for text in ["{{ key }}", "{{ secrets.key", "{{ env.HOME }}", "{{}}"] {
            assert!(Template::new(text).is_err(), "{text}");
        }
        for path in ["x", "/a?b", "/../x", "/{id"] {
            assert!(Template::path(path).is_err(), "{path}");
        }
    }
}
