//! A tool, as a model and its clients see it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolDefinition {
    /// Name by which it is called.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description for a model: what it does and when to call it.
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of the result.
    pub output_schema: Option<Map<String, Value>>,
    /// Hints about what a call changes, such as `readOnlyHint`.
    pub annotations: Option<Value>,
    /// Whether a call makes sense only in a session that earlier calls have used.
    pub resumes: bool,
}

/// Effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    /// Nothing.
    Reads,
    /// It adds something; a second call adds once more.
    Adds,
    /// It changes what is in the session; a second call may do so again.
    Changes,
    /// It changes what is in the session; a second equal call changes nothing more.
    Settles,
    /// It discards state of the session for good; a second equal call changes nothing more.
    Discards,
}

impl ToolDefinition {
    /// A tool that changes nothing outside of its session.
    pub fn new(name: &str, title: &str, description: &str, input_schema: Value, effect: ToolEffect) -> Self {
        let (reads, destroys, idempotent) = match effect {
            ToolEffect::Reads => (true, false, true),
            // Clients that nobody watches refuse destructive tools. Only the sandbox of the agent
            // itself changes.
            ToolEffect::Adds | ToolEffect::Changes => (false, false, false),
            ToolEffect::Settles => (false, false, true),
            ToolEffect::Discards => (false, true, true),
        };
        Self {
            name: name.to_owned(),
            title: Some(title.to_owned()),
            description: description.to_owned(),
            input_schema: object(input_schema),
            output_schema: None,
            // Nothing leaves a sandbox, and nothing outside is reached.
            annotations: Some(json!({
                "title": title,
                "readOnlyHint": reads,
                "destructiveHint": destroys,
                "idempotentHint": idempotent,
                "openWorldHint": false,
            })),
            resumes: false,
        }
    }

    /// The same tool with the JSON Schema of its result.
    #[must_use]
    pub fn returns(mut self, output_schema: Value) -> Self {
        self.output_schema = Some(object(output_schema));
        self
    }

    /// The same tool for sessions that earlier calls have used.
    #[must_use]
    pub const fn resumes(mut self) -> Self {
        self.resumes = true;
        self
    }
}

/// Returns the JSON Schema of arguments of this type, in one piece.
pub fn input_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12())
}

/// Returns the JSON Schema of a result of this type, in one piece. A field that is omitted if it is
/// empty is not required.
pub fn output_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    SchemaGenerator::new(settings).into_root_schema_for::<T>().into()
}

/// Returns the fields of a JSON Schema.
pub fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
