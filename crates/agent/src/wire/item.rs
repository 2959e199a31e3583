//! Items: what goes into a response and what comes out of it. Nullable keys are always written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::Part;

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said.
    Message(Message),
    /// A call of one of the client's functions.
    FunctionCall(FunctionCall),
    /// What the client's function gave.
    FunctionCallOutput(FunctionCallOutput),
    /// What the model thought.
    Reasoning(Reasoning),
    /// Code that the model ran.
    CodeInterpreterCall(CodeInterpreterCall),
    /// The tools that a server offers.
    McpListTools(McpListTools),
    /// A call of a server's tool.
    McpCall(McpCall),
    /// What was said before, in short and sealed.
    Compaction(Compaction),
    /// An item of a stored response, by its id; only in requests.
    ItemReference(ItemReference),
}

impl Item {
    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Message(item) => &item.id,
            Self::FunctionCall(item) => &item.id,
            Self::FunctionCallOutput(item) => &item.id,
            Self::Reasoning(item) => &item.id,
            Self::CodeInterpreterCall(item) => &item.id,
            Self::McpListTools(item) => &item.id,
            Self::McpCall(item) => &item.id,
            Self::Compaction(item) => &item.id,
            Self::ItemReference(item) => &item.id,
        }
    }

    pub(super) fn set_status(&mut self, status: ItemStatus) {
        match self {
            Self::Message(item) => item.status = status,
            Self::FunctionCall(item) => item.status = status,
            Self::FunctionCallOutput(item) => item.status = status,
            Self::Reasoning(item) => item.status = status,
            Self::CodeInterpreterCall(item) => item.status = status,
            Self::McpCall(item) => item.status = status,
            // They have none.
            Self::McpListTools(_) | Self::Compaction(_) | Self::ItemReference(_) => {}
        }
    }
}

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// It is being written.
    InProgress,
    /// Its code runs; only for a [`CodeInterpreterCall`].
    Interpreting,
    /// It is whole.
    Completed,
    /// It was cut short.
    Incomplete,
    /// Its server works on it; only for a [`McpCall`].
    Calling,
    /// It could not be done; only for a [`CodeInterpreterCall`] or a [`McpCall`].
    Failed,
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `msg_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// By whom.
    pub role: Role,
    /// What.
    pub content: Vec<Part>,
    /// Whether it is `commentary` or the `final_answer`; left out where it was not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The application, by its older name.
    System,
    /// The application.
    Developer,
}

/// A call of one of the client's functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// `fc_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// What its output refers to.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// The namespace that it stands in; left out where it stands in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON as the model wrote it, which may be broken.
    pub arguments: String,
}

/// What the client's function gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCallOutput {
    /// `fco_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// Which call.
    pub call_id: String,
    /// What it gave.
    pub output: Output,
}

/// What a function gave: text, or parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    /// Text.
    Text(String),
    /// Text, pictures and files.
    Parts(Vec<Part>),
}

/// What the model thought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// `rs_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// In short.
    pub summary: Vec<Part>,
    /// As it is, where the provider shows it.
    pub content: Option<Vec<Part>>,
    /// In a form that only the provider reads.
    pub encrypted_content: Option<String>,
}

/// Code that the model ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeInterpreterCall {
    /// `ci_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// Where it runs; known before any code is.
    pub container_id: String,
    /// The code; empty at first, null where a client left it out.
    pub code: Option<String>,
    /// What it gave, where that is included.
    pub outputs: Option<Vec<InterpreterOutput>>,
}

/// The tools that a server offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpListTools {
    /// `mcpl_…`.
    pub id: String,
    /// The server's label.
    pub server_label: String,
    /// Its tools; none before it has answered.
    pub tools: Vec<ListedTool>,
    /// Why there are none, where it could not be asked. Left out otherwise: a client's schema has no null here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// Description of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub input_schema: Value,
    /// What its server alleges about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    /// `mcp_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// The server's label.
    pub server_label: String,
    /// The tool.
    pub name: String,
    /// JSON as the model wrote it, which may be broken.
    pub arguments: String,
    /// What it gave, as text.
    pub output: Option<String>,
    /// Why it gave nothing.
    pub error: Option<McpError>,
    /// Always null: nobody is asked before a call.
    pub approval_request_id: Option<String>,
}

/// Why a tool gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum McpError {
    /// The server did not do its part.
    #[serde(rename = "mcp_protocol_error")]
    Protocol {
        /// As JSON-RPC has it.
        code: i64,
        /// In words.
        message: String,
    },
    /// The tool says that it failed.
    #[serde(rename = "mcp_tool_execution_error")]
    Execution {
        /// In its own words.
        content: Vec<McpText>,
    },
}

/// A text of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum McpText {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

impl McpError {
    /// A server that did not do its part: JSON-RPC's code for an internal error.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol {
            code: -32603,
            message: message.into(),
        }
    }

    /// A tool that says that it failed.
    pub fn execution(text: impl Into<String>) -> Self {
        Self::Execution {
            content: vec![McpText::Text { text: text.into() }],
        }
    }

    /// The error in words.
    pub fn words(&self) -> String {
        match self {
            Self::Protocol { message, .. } => message.clone(),
            Self::Execution { content } => {
                let texts: Vec<_> = content
                    .iter()
                    .map(|McpText::Text { text }| text.as_str())
                    .collect();
                texts.join("\n")
            }
        }
    }
}

/// What was said before, in short and sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// `cmp_…`.
    pub id: String,
    /// In a form that only this gateway reads, and only for whom it was made.
    pub encrypted_content: String,
}

/// An item of a stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemReference {
    /// Its id.
    pub id: String,
}

/// What code gave. Clients know these two and no others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InterpreterOutput {
    /// What it printed, its values and tracebacks.
    Logs {
        /// As text.
        logs: String,
    },
    /// A picture.
    Image {
        /// Its address.
        url: String,
    },
}
