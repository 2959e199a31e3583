//! YAML as a tree that knows its lines.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::mistake::Mistake;
use super::node::{Key, Node, Origin, Value};

/// Reads a file's text. An empty one is an empty mapping.
pub(super) fn parse(text: &str, path: &Path) -> Result<Node, Mistake> {
    let path = Arc::new(path.to_owned());
    let origin = |location: Location| Origin::File {
        path: Arc::clone(&path),
        line: location.line().max(1),
        column: location.column().max(1),
    };
    match read(text) {
        Ok(raw) => {
            let mut node = place(raw, &origin);
            if node.value == Value::Null {
                node.value = Value::Map(Vec::new());
            }
            Ok(node)
        }
        Err(error) => {
            let origin = error.location().map(origin);
            let words = error.without_snippet().to_string();
            // The location is told by the origin already.
            let words = words.split(" at line ").next().unwrap_or(&words);
            let words = words.split(", set DuplicateKeyPolicy").next().unwrap_or(words);
            Err(Mistake::told(origin, format!("invalid YAML: {words}")))
        }
    }
}

/// Reads a value of an environment variable: invalid YAML is text.
pub(super) fn value(text: &str, origin: &Origin) -> Node {
    let here = |_: Location| origin.clone();
    match read(text) {
        Ok(raw) => place(raw, &here),
        Err(_) => Node {
            value: Value::Text(text.to_owned()),
            origin: origin.clone(),
        },
    }
}

/// Only `true` and `false` are booleans: `no` and `n` are names.
fn read(text: &str) -> Result<Spanned<YamlValue>, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true })
}

/// A value as YAML has it, with the locations of what is in it.
#[derive(Debug)]
enum YamlValue {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Spanned<YamlValue>>),
    Map(Vec<(Spanned<String>, Spanned<YamlValue>)>),
}

fn place(raw: Spanned<YamlValue>, origin: &impl Fn(Location) -> Origin) -> Node {
    let value = match raw.value {
        YamlValue::Null => Value::Null,
        YamlValue::Bool(value) => Value::Bool(value),
        YamlValue::Integer(value) => Value::Integer(value),
        YamlValue::Float(value) => Value::Float(value),
        YamlValue::Text(value) => Value::Text(value),
        YamlValue::List(items) => Value::List(items.into_iter().map(|item| place(item, origin)).collect()),
        YamlValue::Map(entries) => {
            let entry = |(key, value): (Spanned<String>, _)| {
                let key = Key {
                    name: key.value,
                    origin: origin(key.referenced),
                };
                (key, place(value, origin))
            };
            Value::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node {
        value,
        origin: origin(raw.referenced),
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = YamlValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlValue::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Node {
        parse(text, Path::new("c.yaml")).unwrap()
    }

    #[test]
    fn every_part_knows_its_line_and_column() {
        let node = parsed("# hello\nlisten: here\nlimits:\n  memory: 2\n  list: [1.5, true, ~]\n");
        assert_eq!(
            node.at(&["listen"]).unwrap().value,
            Value::Text("here".to_owned())
        );
        for (path, place) in [
            (&["listen"][..], "c.yaml:2:9"),
            (&["limits", "memory"], "c.yaml:4:11"),
            (&["limits", "list", "1"], "c.yaml:5:15"),
            (&["limits", "none"], "c.yaml:4:3"),
        ] {
            assert_eq!(node.origin_of(path).to_string(), place, "{path:?}");
        }
        assert_eq!(
            node.at(&["limits", "list", "0"]).unwrap().value,
            Value::Float(1.5)
        );
        assert_eq!(
            node.at(&["limits", "list", "1"]).unwrap().value,
            Value::Bool(true)
        );
        assert_eq!(node.at(&["limits", "list", "2"]).unwrap().value, Value::Null);
        let Value::Map(entries) = &node.value else {
            panic!()
        };
        assert_eq!(entries[1].0.origin.to_string(), "c.yaml:3:1");
    }

    #[test]
    fn an_empty_file_is_an_empty_mapping() {
        for text in ["", "# nothing\n", "---\n"] {
            assert_eq!(parsed(text).value, Value::Map(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_line() {
        for text in ["a: [1\nb: 2\n", "a: 1\na: 2\n", "a: 1\n  b: 2\n", "a: *none\n"] {
            let mistake = parse(text, Path::new("c.yaml")).unwrap_err().to_string();
            insta::with_settings!({omit_expression => true, description => text}, {
                insta::assert_snapshot!(mistake);
            });
        }
    }
}
