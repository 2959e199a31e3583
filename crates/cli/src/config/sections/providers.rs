//! Providers by name: those of models, and the tool `code_interpreter`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::code_interpreter::CodeInterpreter;
use super::provider::ProviderSection;
use crate::config::check::Check;
use crate::config::node::Value;

/// The one provider that is a tool.
const CODE_INTERPRETER: &str = "code_interpreter";

/// Providers by name, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Providers {
    pub(crate) code_interpreter: CodeInterpreter,
    pub(crate) models: Vec<(String, ProviderSection)>,
}

impl Providers {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        self.code_interpreter.check(check);
        for (name, provider) in &self.models {
            provider.check(name, check);
        }
    }
}

/// Reports mistakes with better messages than decoding would: keys in plain text, and unknown
/// tools.
pub(in crate::config) fn check_names(check: &mut Check<'_>) {
    let Some(providers) = check.part(&["providers"]) else {
        return;
    };
    let Value::Map(entries) = &providers.value else {
        return;
    };
    for (name, provider) in entries.iter().filter(|(name, _)| name.name != CODE_INTERPRETER) {
        let Value::Map(keys) = &provider.value else {
            continue;
        };
        let name = name.name.as_str();
        for (key, _) in keys {
            if matches!(
                key.name.as_str(),
                "key" | "api_key" | "apikey" | "token" | "secret"
            ) {
                check.wrong_key(
                    &["providers", name, &key.name],
                    &key.origin,
                    "a configuration must not contain keys; use `key_env` with the name of an environment \
                     variable, or `key_file`",
                );
            }
        }
        if !keys.iter().any(|(key, _)| key.name == "type") {
            let tool = keys.iter().any(|(key, _)| key.name == "settings");
            let message = if tool {
                "unknown tool; the only one is `code_interpreter`. A model provider needs a `type`: \
                 `chat`, `responses`, `scripted` or `demo`"
            } else {
                "missing key `type`: `chat` for Chat Completions, `responses`, `scripted` or `demo`"
            };
            check.wrong(&["providers", name], message);
        }
    }
}

impl<'de> Deserialize<'de> for Providers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ProvidersVisitor)
    }
}

struct ProvidersVisitor;

impl<'de> Visitor<'de> for ProvidersVisitor {
    type Value = Providers;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a mapping of names to providers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Providers, A::Error> {
        let mut providers = Providers::default();
        while let Some(name) = access.next_key::<String>()? {
            if name == CODE_INTERPRETER {
                providers.code_interpreter = access.next_value()?;
            } else if providers.models.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format_args!("duplicate provider `{name}`")));
            } else {
                providers.models.push((name, access.next_value()?));
            }
        }
        Ok(providers)
    }
}

impl Serialize for Providers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(CODE_INTERPRETER, &self.code_interpreter)?;
        for (name, provider) in &self.models {
            map.serialize_entry(name, provider)?;
        }
        map.end()
    }
}

impl JsonSchema for Providers {
    fn schema_name() -> Cow<'static, str> {
        "Providers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Model providers by name, and the tool `code_interpreter`. A request goes to \
                            the provider that lists its model; otherwise to the one with the longest \
                            matching prefix.",
            "type": "object",
            "properties": {"code_interpreter": generator.subschema_for::<CodeInterpreter>()},
            "additionalProperties": generator.subschema_for::<ProviderSection>(),
        })
    }
}
