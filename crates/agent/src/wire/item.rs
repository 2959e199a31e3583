//! Items: the elements of requests and responses. Nullable keys are always written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::{McpApprovalRequest, McpApprovalResponse};
use super::call_report::CallReport;
use super::content::{Part, texts};
use super::custom::{CustomCall, CustomCallOutput};
use super::local_shell::{LocalShellCall, LocalShellCallOutput};
use super::patch::{PatchCall, PatchCallOutput};
use super::program::{Program, ProgramOutput};
use super::search::{SearchCall, SearchOutput};
use super::shell::{ShellCall, ShellCallOutput};

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// A message.
    Message(Message),
    /// A call of one of the client's functions.
    FunctionCall(FunctionCall),
    /// The result of the client's function.
    FunctionCallOutput(FunctionCallOutput),
    /// Reasoning of the model.
    Reasoning(Reasoning),
    /// Code that the model runs.
    CodeInterpreterCall(CodeInterpreterCall),
    /// Commands that the model runs.
    ShellCall(ShellCall),
    /// Outputs of commands.
    ShellCallOutput(ShellCallOutput),
    /// A change of one of the client's files.
    ApplyPatchCall(PatchCall),
    /// Result of a change.
    ApplyPatchCallOutput(PatchCallOutput),
    /// A command on the client's computer, in the older form.
    LocalShellCall(LocalShellCall),
    /// Result of such a command.
    LocalShellCallOutput(LocalShellCallOutput),
    /// A call of one of the client's tools that take one text.
    CustomToolCall(CustomCall),
    /// The result of such a tool.
    CustomToolCallOutput(CustomCallOutput),
    /// A program that calls the client's functions.
    Program(Program),
    /// The result of a program.
    ProgramOutput(ProgramOutput),
    /// A search of deferred tools.
    ToolSearchCall(SearchCall),
    /// The tools that a search loaded.
    ToolSearchOutput(SearchOutput),
    /// The list of a server's tools.
    McpListTools(McpListTools),
    /// A call of a server's tool.
    McpCall(McpCall),
    /// A call that waits for approval.
    McpApprovalRequest(McpApprovalRequest),
    /// A person's answer to a request for approval.
    McpApprovalResponse(McpApprovalResponse),
    /// A sealed summary of the conversation so far.
    Compaction(Compaction),
    /// An item of a stored response, by its id; only in requests.
    ItemReference(ItemReference),
}

impl Item {
    /// Returns its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Message(item) => &item.id,
            Self::FunctionCall(item) => &item.id,
            Self::FunctionCallOutput(item) => &item.id,
            Self::Reasoning(item) => &item.id,
            Self::CodeInterpreterCall(item) => &item.id,
            Self::ShellCall(item) => &item.id,
            Self::ShellCallOutput(item) => &item.id,
            Self::ApplyPatchCall(item) => &item.id,
            Self::ApplyPatchCallOutput(item) => &item.id,
            Self::LocalShellCall(item) => &item.id,
            Self::LocalShellCallOutput(item) => &item.id,
            Self::CustomToolCall(item) => &item.id,
            Self::CustomToolCallOutput(item) => &item.id,
            Self::Program(item) => &item.id,
            Self::ProgramOutput(item) => &item.id,
            Self::ToolSearchCall(item) => &item.id,
            Self::ToolSearchOutput(item) => &item.id,
            Self::McpListTools(item) => &item.id,
            Self::McpCall(item) => &item.id,
            Self::McpApprovalRequest(item) => &item.id,
            Self::McpApprovalResponse(item) => &item.id,
            Self::Compaction(item) => &item.id,
            Self::ItemReference(item) => &item.id,
        }
    }

    /// Returns the item as models know it: calls of every kind, and their outputs, are those of functions. A
    /// search that was served here stays, and so do the tools that a search loaded: later turns offer them.
    #[must_use]
    pub fn into_function(self) -> Self {
        match self {
            Self::ShellCall(call) => Self::FunctionCall(call.into_function()),
            Self::ShellCallOutput(output) => Self::FunctionCallOutput(output.into_function()),
            Self::ApplyPatchCall(call) => Self::FunctionCall(call.into_function()),
            Self::ApplyPatchCallOutput(output) => Self::FunctionCallOutput(output.into_function()),
            Self::LocalShellCall(call) => Self::FunctionCall(call.into_function()),
            Self::LocalShellCallOutput(output) => Self::FunctionCallOutput(output.into_function()),
            Self::CustomToolCall(call) => Self::FunctionCall(call.into_function()),
            Self::CustomToolCallOutput(output) => Self::FunctionCallOutput(output.into_function()),
            Self::Program(program) => Self::FunctionCall(program.into_function()),
            Self::ProgramOutput(output) => Self::FunctionCallOutput(output.into_function()),
            Self::ToolSearchCall(call) => match call.call_id.clone() {
                Some(id) => Self::FunctionCall(call.into_function(id)),
                None => Self::ToolSearchCall(call),
            },
            other => other,
        }
    }

    pub(super) fn set_status(&mut self, status: ItemStatus) {
        match self {
            Self::Message(item) => item.status = status,
            Self::FunctionCall(item) => item.status = status,
            Self::FunctionCallOutput(item) => item.status = status,
            Self::Reasoning(item) => item.status = status,
            Self::CodeInterpreterCall(item) => item.status = status,
            Self::ShellCall(item) => item.status = status,
            Self::ShellCallOutput(item) => item.status = status,
            Self::ApplyPatchCall(item) => item.status = status,
            Self::ApplyPatchCallOutput(item) => item.status = status,
            Self::LocalShellCall(item) => item.status = status,
            Self::LocalShellCallOutput(item) => item.status = status,
            Self::CustomToolCall(item) => item.status = status,
            Self::CustomToolCallOutput(item) => item.status = status,
            Self::ProgramOutput(item) => item.status = status,
            Self::ToolSearchCall(item) => item.status = status,
            Self::ToolSearchOutput(item) => item.status = status,
            Self::McpCall(item) => item.status = status,
            // These have no status.
            Self::Program(_)
            | Self::McpListTools(_)
            | Self::McpApprovalRequest(_)
            | Self::McpApprovalResponse(_)
            | Self::Compaction(_)
            | Self::ItemReference(_) => {}
        }
    }
}

/// Progress of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// The item is being written.
    InProgress,
    /// The code runs; only for a [`CodeInterpreterCall`].
    Interpreting,
    /// The item is complete.
    Completed,
    /// The item ended early.
    Incomplete,
    /// The server works on the call; only for a [`McpCall`].
    Calling,
    /// The call failed; only for a [`CodeInterpreterCall`] or a [`McpCall`].
    Failed,
}

impl ItemStatus {
    /// Returns whether the code of a [`CodeInterpreterCall`] has not ended.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::InProgress | Self::Interpreting)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `msg_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Author.
    pub role: Role,
    /// Content.
    pub content: Vec<Part>,
    /// Phase: `commentary` or `final_answer`; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The application, with its older name.
    System,
    /// The application.
    Developer,
}

/// A call of one of the client's functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// `fc_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id that its output refers to.
    pub call_id: String,
    /// Name of the function.
    pub name: String,
    /// Namespace of the function; omitted if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON as written by the model, possibly invalid.
    pub arguments: String,
    /// Caller that made the call; omitted if the model itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<ToolCaller>,
}

/// Caller of a function, if not the model itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCaller {
    /// Code that the model runs.
    Program {
        /// Id of the [`CodeInterpreterCall`] that runs it, or call id of the [`Program`].
        caller_id: String,
    },
}

/// The result of the client's function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCallOutput {
    /// `fco_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id of the call.
    pub call_id: String,
    /// The result.
    pub output: FunctionOutput,
    /// Caller that made the call, as the client repeats it; omitted if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<ToolCaller>,
}

/// Result of a function: text, or parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FunctionOutput {
    /// Text.
    Text(String),
    /// Text, pictures and files.
    Parts(Vec<Part>),
}

impl FunctionOutput {
    /// Returns its text; of parts, their texts.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => texts(parts),
        }
    }
}

/// Reasoning of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// `rs_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Summary.
    pub summary: Vec<Part>,
    /// Full text, if the provider reveals it; omitted otherwise, because a client rejects null here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Part>>,
    /// Sealed form, which only the provider reads.
    pub encrypted_content: Option<String>,
}

/// Code that the model runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeInterpreterCall {
    /// `ci_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id of its container, known before any code.
    pub container_id: String,
    /// The code; empty at first, null if a client omitted it.
    pub code: Option<String>,
    /// Outputs, if included.
    pub outputs: Option<Vec<InterpreterOutput>>,
    /// Detailed report of the call; not part of the Responses API.
    #[serde(skip)]
    pub report: Option<Box<CallReport>>,
}

/// The list of a server's tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpListTools {
    /// `mcpl_…`.
    pub id: String,
    /// The server's label.
    pub server_label: String,
    /// Its tools; empty before it has responded.
    pub tools: Vec<ListedTool>,
    /// The reason why they could not be listed. Omitted otherwise: a client's schema does not
    /// permit null here.
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
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// The server's claims about it; not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    /// `mcp_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// The server's label.
    pub server_label: String,
    /// Name of the tool.
    pub name: String,
    /// JSON as written by the model, possibly invalid.
    pub arguments: String,
    /// Result as text.
    pub output: Option<String>,
    /// The reason why there is no result.
    pub error: Option<McpError>,
    /// Id of the request for its approval; null if it needed none.
    pub approval_request_id: Option<String>,
    /// Detailed report of the call in a sandbox; not part of the Responses API.
    #[serde(skip)]
    pub report: Option<Box<CallReport>>,
}

/// The reason why a tool returned no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum McpError {
    /// The server failed.
    #[serde(rename = "mcp_protocol_error")]
    Protocol {
        /// Code of JSON-RPC.
        code: i64,
        /// Message for people.
        message: String,
    },
    /// The tool reported a failure.
    #[serde(rename = "mcp_tool_execution_error")]
    Execution {
        /// The tool's own words.
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
    /// Creates the error for a failed server, with JSON-RPC's code for an internal error.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol {
            code: -32603,
            message: message.into(),
        }
    }

    /// Creates the error for a tool that reported a failure.
    pub fn execution(text: impl Into<String>) -> Self {
        Self::Execution {
            content: vec![McpText::Text { text: text.into() }],
        }
    }

    /// Returns the error's message.
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

/// A sealed summary of the conversation so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// `cmp_…`.
    pub id: String,
    /// Form that only this gateway reads, and only for the client that it was created for.
    pub encrypted_content: String,
}

/// An item of a stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemReference {
    /// Id of the item.
    pub id: String,
}

/// Output of code. Clients know only these two kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InterpreterOutput {
    /// Printed text, values and tracebacks.
    Logs {
        /// The text.
        logs: String,
    },
    /// A picture.
    Image {
        /// URL of the picture.
        url: String,
    },
}
