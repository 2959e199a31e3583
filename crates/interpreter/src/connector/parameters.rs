//! Arguments of a call: checked, with defaults, and in one form for equal calls.

use serde_json::{Map, Value};

use super::schema::DeclaredSchema;
use super::{Card, ConnectorError};
use crate::host_call::shown;

/// Maximum size of the arguments of a call as JSON, in bytes.
const BYTES: usize = 1 << 20;
/// Keywords of a schema whose parameters are not all in `properties`.
const OPEN: [&str; 7] = [
    "$ref",
    "allOf",
    "anyOf",
    "dependentSchemas",
    "if",
    "oneOf",
    "patternProperties",
];

/// The parameters of a function.
#[derive(Debug)]
pub(super) struct Parameters {
    /// Names with defaults, where the schema has some.
    defaults: Vec<(String, Option<Value>)>,
    /// Whether there are no others.
    closed: bool,
    schema: Option<DeclaredSchema>,
}

/// Arguments in one form for equal calls.
#[derive(Debug, PartialEq)]
pub(super) struct CanonicalArguments {
    pub(super) arguments: Map<String, Value>,
    /// The arguments as JSON with sorted keys.
    pub(super) canonical: String,
}

impl Parameters {
    pub(super) fn new(card: &Card) -> Self {
        let named = card.parameters.get("properties").and_then(Value::as_object);
        let defaults = named
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), schema.get("default").cloned()));
        let more = match card.parameters.get("additionalProperties") {
            None | Some(Value::Bool(false)) => OPEN.iter().any(|key| card.parameters.get(key).is_some()),
            Some(_) => true,
        };
        Self {
            defaults: defaults.collect(),
            closed: !more,
            schema: DeclaredSchema::new(&card.parameters),
        }
    }

    /// Checks the arguments of a call and adds the defaults.
    pub(super) fn bind(
        &self,
        mut arguments: Map<String, Value>,
    ) -> Result<CanonicalArguments, ConnectorError> {
        if self.closed
            && let Some(unknown) = arguments
                .keys()
                .find(|name| self.defaults.iter().all(|(known, _)| known != *name))
        {
            let known: Vec<_> = self
                .defaults
                .iter()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            return Err(ConnectorError::invalid(format!(
                "unknown parameter `{}`; {known}",
                shown(unknown)
            )));
        }
        for (name, default) in &self.defaults {
            if let Some(default) = default
                && !arguments.contains_key(name)
            {
                arguments.insert(name.clone(), default.clone());
            }
        }
        let mut arguments = Value::Object(arguments);
        arguments.sort_all_objects();
        let canonical = arguments.to_string();
        if canonical.len() > BYTES {
            return Err(ConnectorError::invalid(format!(
                "the arguments have {} bytes as JSON, the limit is {BYTES}; pass less at once",
                canonical.len()
            )));
        }
        if let Some(schema) = &self.schema {
            schema.check(&arguments).map_err(ConnectorError::invalid)?;
        }
        match arguments {
            Value::Object(arguments) => Ok(CanonicalArguments { arguments, canonical }),
            _ => Err(ConnectorError::invalid("the arguments are not an object")),
        }
    }
}
