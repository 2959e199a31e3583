//! Types of connectors: the one list of them.

use std::path::Path;

use cellblock_interpreter::connector::{WriteApproval, with_approval};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::command::{CommandOptions, ProgramOptions};
use crate::files::FilesOptions;
use crate::http::{HttpFunctions, RequestOptions};
use crate::openapi::OpenapiOptions;
use crate::options::{McpOptions, TypeOptions};
use crate::python::PythonOptions;
use crate::recipe::{ConnectorRecipe, ConnectorResult};
use crate::sql::SqlOptions;

const ABOUT: &str = "A connector: functions that code in sessions with the toolset `notebook` can call. \
                     The host\nanswers the calls.";

/// Defines the types, whose names are those of the variants in lower case.
macro_rules! connector_types {
    ($($(#[$doc:meta])* $kind:ident($options:ty),)*) => {
        /// Kind of a connector.
        #[derive(Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        enum ConnectorType { $($(#[$doc])* $kind),* }

        /// Options of a connector, by its type.
        #[derive(Clone, Debug, Serialize)]
        #[serde(tag = "type", rename_all = "lowercase")]
        pub enum ConnectorOptions { $($(#[$doc])* $kind($options)),* }

        impl ConnectorOptions {
            /// Reads a connector. Keys that its type does not have are ignored.
            pub fn read<'de, D: Deserializer<'de> + Copy>(mapping: D) -> Result<Self, D::Error> {
                match TypeKey::deserialize(mapping)?.kind {
                    $(ConnectorType::$kind => <$options>::read(mapping).map(Self::$kind)),*
                }
            }

            /// Makes the connector, except of the type `mcp`. Connects to nothing. Paths count from the
            /// folder. Without one, no secret and no file is read: the rest is checked.
            pub fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
                let made = match self { $(Self::$kind(options) => options.connector(name, folder)),* };
                made.map(|connector| with_approval(connector, self.approval()))
            }

            /// Returns the approval of its functions that write.
            pub const fn approval(&self) -> WriteApproval {
                match self { $(Self::$kind(options) => options.approval()),* }
            }

            /// Returns the schema of the keys of all types; that of a function is within `functions`.
            pub fn schema(generator: &mut SchemaGenerator) -> Value {
                let mut kind = generator.subschema_for::<ConnectorType>();
                kind.insert("description".into(), "Kind of the connector.".into());
                let mut schema = json!({
                    "description": ABOUT,
                    "type": "object",
                    "properties": {"type": kind},
                    "additionalProperties": false,
                    "required": ["type"],
                });
                $(merge(&mut schema, <$options>::json_schema(generator).to_value());)*
                schema
            }
        }
    };
}

connector_types! {
    /// A JSON API over HTTP.
    Http(TypeOptions<HttpFunctions, RequestOptions>),
    /// Parquet, CSV and JSON lines files in a folder of the host or in S3.
    Files(TypeOptions<FilesOptions>),
    /// A program of any language that answers calls over its stdin and stdout.
    Command(TypeOptions<CommandOptions, ProgramOptions>),
    /// Functions of a Python module, in a process of its own.
    Python(TypeOptions<PythonOptions, ProgramOptions>),
    /// Tools of a server of `mcp_servers`, under a name of their own.
    Mcp(McpOptions),
    /// A Postgres, MySQL, MariaDB or SQLite database.
    Sql(TypeOptions<SqlOptions>),
    /// A JSON API that an OpenAPI document describes.
    Openapi(TypeOptions<OpenapiOptions, RequestOptions>),
}

#[derive(Deserialize)]
struct TypeKey {
    #[serde(rename = "type")]
    kind: ConnectorType,
}

impl JsonSchema for ConnectorOptions {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Connector".into()
    }

    /// One schema for all types, so that editors describe each key; the type decides about the keys later.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        const FUNCTION: &str = "ConnectorFunction";
        let mut schema = Self::schema(generator);
        let function = &mut schema["properties"]["functions"]["additionalProperties"];
        let reference = json!({"$ref": format!("#/$defs/{FUNCTION}")});
        let mut function = std::mem::replace(function, reference);
        function["additionalProperties"] = false.into();
        generator.definitions_mut().insert(FUNCTION.to_owned(), function);
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// Adds what only the second schema has.
fn merge(schema: &mut Value, other: Value) {
    match (schema, other) {
        (Value::Object(schema), Value::Object(other)) => {
            for (key, value) in other {
                merge(schema.entry(key).or_insert(Value::Null), value);
            }
        }
        (schema @ Value::Null, other) => *schema = other,
        _ => {}
    }
}
