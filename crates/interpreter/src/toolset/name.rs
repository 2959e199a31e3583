//! Toolsets by their names, as configurations, requests and command lines write them.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::json;

use super::{TOOLSETS, ToolsetKind};

impl ToolsetKind {
    /// Returns the toolset of this name.
    pub fn named(name: &str) -> Option<Self> {
        TOOLSETS.into_iter().find(|kind| kind.name == name)
    }
}

impl Serialize for ToolsetKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for ToolsetKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Read by a visitor, so that the error knows where the name is written.
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = ToolsetKind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ToolsetKind, E> {
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| TOOLSETS.iter().map(|kind| kind.name).collect());
        ToolsetKind::named(name).ok_or_else(|| E::unknown_variant(name, &NAMES))
    }
}

impl JsonSchema for ToolsetKind {
    fn schema_name() -> Cow<'static, str> {
        "ToolsetName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = TOOLSETS.iter().map(
            |kind| json!({"description": format!("{}.", kind.summary), "type": "string", "const": kind.name}),
        );
        json_schema!({"description": "Name of a toolset.", "oneOf": names.collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_toolset_is_written_and_read_by_its_name() {
        for kind in TOOLSETS {
            let written = json!(kind);
            assert_eq!(written, kind.name);
            assert_eq!(serde_json::from_value::<ToolsetKind>(written).unwrap(), kind);
        }
        let error = serde_json::from_value::<ToolsetKind>(json!("greeter"))
            .unwrap_err()
            .to_string();
        for kind in TOOLSETS {
            assert!(error.contains(kind.name), "{error}");
        }
    }
}
