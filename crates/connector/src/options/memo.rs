//! The setting `memo`: which later calls get the answer of an equal earlier one.

use cellblock_interpreter::connector::MemoPolicy;
use cellblock_settings::Time;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{Error as _, IntoDeserializer as _};
use serde::{Deserialize, Deserializer, Serializer};

/// Reads the setting.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MemoPolicy, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time: StrDeserializer<'_, Error> = text.as_str().into_deserializer();
    match (text.as_str(), Time::deserialize(time)) {
        ("off", _) => Ok(MemoPolicy::Off),
        ("session", _) => Ok(MemoPolicy::Session),
        (_, Ok(lifetime)) if !lifetime.is_zero() => Ok(MemoPolicy::Shared(lifetime)),
        _ => Err(D::Error::custom(format!(
            "`{text}` is none of `off`, `session` and a time such as `15m`"
        ))),
    }
}

/// Writes the setting.
pub(super) fn serialize<S: Serializer>(policy: &MemoPolicy, serializer: S) -> Result<S::Ok, S::Error> {
    match policy {
        MemoPolicy::Off => serializer.serialize_str("off"),
        MemoPolicy::Session => serializer.serialize_str("session"),
        MemoPolicy::Shared(lifetime) => serializer.collect_str(&Time(*lifetime)),
    }
}

/// Describes the setting.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^(off|session|\s*\d+(\.\d+)?\s*(h|m|ms|s)?\s*)$",
    })
}
