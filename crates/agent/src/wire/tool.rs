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
    /// The tools of a server, which are called here.
    Mcp(McpTool),
    /// Functions of the client that share a name before their own.
    Namespace(Namespace),
}

impl Tool {
    /// What it is told apart by among tools of its type: a function's or a namespace's name, a server's label.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::CodeInterpreter { .. } => "code_interpreter",
            Self::Mcp(tool) => &tool.server_label,
            Self::Namespace(namespace) => &namespace.name,
        }
    }

    /// The functions of the client in it, each after the namespace that it stands in.
    pub fn functions(&self) -> impl Iterator<Item = (Option<&Namespace>, &Function)> {
        let (one, namespace) = match self {
            Self::Function(function) => (Some((None, function)), None),
            Self::Namespace(namespace) => (None, Some(namespace)),
            Self::CodeInterpreter { .. } | Self::Mcp(_) => (None, None),
        };
        let within = namespace.into_iter().flat_map(|namespace| {
            let members = namespace.tools.iter();
            members.map(move |Member::Function(function)| (Some(namespace), function))
        });
        one.into_iter().chain(within)
    }
}

/// Functions of the client that share a name before their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Namespace {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// What they are for.
    pub description: String,
    /// They, at least one.
    pub tools: Vec<Member>,
}

/// A tool in a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Member {
    /// A function of the client.
    Function(Function),
}

/// The tools of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// What the client calls the server.
    pub server_label: String,
    /// Where it is; null for one that the operator has set up under this label.
    pub server_url: Option<String>,
    /// What it is for, in words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_description: Option<String>,
    /// Which of its tools; all where it is null.
    pub allowed_tools: Option<AllowedTools>,
    /// Always `never`: nobody is asked before a call.
    pub require_approval: String,
    /// Headers for the server. They may be secrets, so they are neither told nor kept.
    #[serde(skip)]
    pub headers: Secrets,
}

/// Names and values that are not told.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub Vec<(String, String)>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Which tools of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedTools {
    /// Those of these names.
    Names(Vec<String>),
    /// Those that fit.
    Filter {
        /// Those of these names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_names: Option<Vec<String>>,
        /// Those whose server alleges that they only read, or those of which it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_only: Option<bool>,
    },
}

/// A function of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// Description of the tool.
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
        /// The namespace that it stands in, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// Python in a sandbox of ours.
    CodeInterpreter,
    /// A tool of a server, or any of its tools.
    Mcp {
        /// The server's label.
        server_label: String,
        /// The tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl ToolName {
    /// Whether it names this tool.
    pub fn names(&self, tool: &Tool) -> bool {
        match (self, tool) {
            (Self::Function { name, namespace }, tool) => tool.functions().any(|(within, function)| {
                *name == function.name && namespace.as_ref() == within.map(|within| &within.name)
            }),
            (Self::CodeInterpreter, Tool::CodeInterpreter { .. }) => true,
            // Whether the server has the tool is known when it has been asked.
            (Self::Mcp { server_label, .. }, Tool::Mcp(tool)) => *server_label == tool.server_label,
            _ => false,
        }
    }
}
