//! Tools that a request offers to the model, and which of them it may or must choose.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// A function of the client, which calls of it are handed back to.
    Function(Function),
    /// Python in a sandbox of ours.
    CodeInterpreter {
        /// Where it runs.
        container: Container,
    },
}

impl Tool {
    /// What the model calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::CodeInterpreter { .. } => "code_interpreter",
        }
    }
}

/// A function of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub parameters: Option<Map<String, Value>>,
    /// Whether arguments keep to the schema exactly.
    pub strict: Option<bool>,
}

/// Where code runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Container {
    /// In this one.
    Id(String),
    /// In one that is made when it is needed.
    Auto(AutoContainer),
}

/// A container that is made when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoContainer {
    /// Always `auto`.
    pub r#type: String,
    /// Uploaded files that it holds from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_ids: Vec<String>,
    /// `1g`, `4g`, `16g` or `64g`.
    pub memory_limit: Option<String>,
}

/// Which tools the model may or must choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolChoice {
    /// Any, as it likes; at least one; none.
    Mode(ChoiceMode),
    /// This one.
    Tool(ToolName),
    /// Some of those that are offered.
    Allowed {
        /// Always `allowed_tools`.
        r#type: String,
        /// As it likes, or at least one.
        mode: AllowedMode,
        /// These.
        tools: Vec<ToolName>,
    },
}

/// Whether the model has to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceMode {
    /// It may not.
    None,
    /// It may.
    Auto,
    /// It must.
    Required,
}

/// Whether the model has to choose among the allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedMode {
    /// It may.
    Auto,
    /// It must.
    Required,
}

/// A tool by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolName {
    /// A function.
    Function {
        /// Its name.
        name: String,
    },
    /// Python in a sandbox of ours.
    CodeInterpreter,
}

impl ToolName {
    /// Whether it names this tool.
    pub fn names(&self, tool: &Tool) -> bool {
        match (self, tool) {
            (Self::Function { name }, Tool::Function(function)) => *name == function.name,
            (Self::CodeInterpreter, Tool::CodeInterpreter { .. }) => true,
            _ => false,
        }
    }
}
