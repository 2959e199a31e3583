//! Events of a streamed response, and how they are framed.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::content::{Annotation, Part};
use super::error::{ApiError, ErrorKind, Fields};
use super::item::Item;
use super::response::Response;
use super::shell::ShellOutput;

/// The end of a stream, after its last event.
pub const DONE: &str = "data: [DONE]\n\n";

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamEvent {
    /// Kind of the event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Number in the stream, from 0 and without gaps.
    pub sequence_number: u64,
}

impl StreamEvent {
    /// Returns the event as JSON.
    pub fn json(&self) -> String {
        // This cannot fail: there are no maps without string keys and no failing writers.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the event as one frame of a `text/event-stream`. Write it in one piece: some clients
    /// lose a frame that arrives in two.
    pub fn frame(&self) -> String {
        let body = self.json();
        // The tag comes first, so the name is the second string.
        let name = body.split('"').nth(3).unwrap_or_default();
        format!("event: {name}\ndata: {body}\n\n")
    }
}

impl EventKind {
    /// Returns the response if this is the last event.
    pub fn last(&self) -> Option<&Response> {
        match self {
            Self::Completed { response } | Self::Incomplete { response } | Self::Failed { response } => {
                Some(response)
            }
            _ => None,
        }
    }

    /// Returns the number of bytes added to the model's text, reasoning or arguments, or to the output
    /// of commands.
    pub fn said(&self) -> usize {
        match self {
            Self::TextDelta { delta, .. }
            | Self::RefusalDelta { delta, .. }
            | Self::ReasoningDelta { delta, .. }
            | Self::ArgumentsDelta { delta, .. }
            | Self::McpArgumentsDelta { delta, .. }
            | Self::ShellCommandDelta { delta, .. }
            | Self::CustomInputDelta { delta, .. }
            | Self::CodeDelta { delta, .. } => delta.len(),
            Self::ShellOutputDelta { delta, .. } => {
                let texts = delta.stdout.iter().chain(&delta.stderr);
                texts.map(String::len).sum()
            }
            _ => 0,
        }
    }
}

/// Kind of an event. Items are identified by their index in the output and their id, parts by their
/// index in the item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
#[expect(
    missing_docs,
    reason = "fields are the same in each: the text added or the text as a whole, and where"
)]
pub enum EventKind {
    /// The response was created.
    #[serde(rename = "response.created")]
    Created { response: Box<Response> },
    /// The response is queued.
    #[serde(rename = "response.queued")]
    Queued { response: Box<Response> },
    /// The response is in progress.
    #[serde(rename = "response.in_progress")]
    InProgress { response: Box<Response> },
    /// The response is complete.
    #[serde(rename = "response.completed")]
    Completed { response: Box<Response> },
    /// The response ended early.
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Box<Response> },
    /// The response failed.
    #[serde(rename = "response.failed")]
    Failed { response: Box<Response> },
    /// An item starts, with only the data that is already known.
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: usize, item: Box<Item> },
    /// An item is final.
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: usize, item: Box<Item> },
    /// A part of a message or of reasoning starts.
    #[serde(rename = "response.content_part.added")]
    PartAdded {
        item_id: String,
        output_index: usize,
        content_index: usize,
        part: Part,
    },
    /// A part is final.
    #[serde(rename = "response.content_part.done")]
    PartDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        part: Part,
    },
    /// Text was added.
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
        logprobs: Vec<Value>,
    },
    /// A text is complete.
    #[serde(rename = "response.output_text.done")]
    TextDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
        logprobs: Vec<Value>,
    },
    /// A range of a text has a reference.
    #[serde(rename = "response.output_text.annotation.added")]
    AnnotationAdded {
        item_id: String,
        output_index: usize,
        content_index: usize,
        annotation_index: usize,
        annotation: Annotation,
    },
    /// A piece of a refusal was added.
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// A refusal is complete.
    #[serde(rename = "response.refusal.done")]
    RefusalDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        refusal: String,
    },
    /// A piece of reasoning was added. OpenAI's name: its SDK for Node rejects others.
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// Reasoning is complete.
    #[serde(rename = "response.reasoning_text.done")]
    ReasoningDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
    },
    /// A piece of reasoning was added, with the name in Open Responses.
    #[serde(rename = "response.reasoning.delta")]
    OpenReasoningDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// Reasoning is complete, with that name.
    #[serde(rename = "response.reasoning.done")]
    OpenReasoningDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
    },
    /// A piece of a function's arguments was added.
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// A function's arguments are complete.
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        item_id: String,
        output_index: usize,
        name: String,
        arguments: String,
    },
    /// A call of the interpreter starts.
    #[serde(rename = "response.code_interpreter_call.in_progress")]
    InterpreterInProgress { item_id: String, output_index: usize },
    /// A piece of code was added.
    #[serde(rename = "response.code_interpreter_call_code.delta")]
    CodeDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// The code is complete.
    #[serde(rename = "response.code_interpreter_call_code.done")]
    CodeDone {
        item_id: String,
        output_index: usize,
        code: String,
    },
    /// The code runs.
    #[serde(rename = "response.code_interpreter_call.interpreting")]
    InterpreterInterpreting { item_id: String, output_index: usize },
    /// The code has completed.
    #[serde(rename = "response.code_interpreter_call.completed")]
    InterpreterCompleted { item_id: String, output_index: usize },
    /// The code was not run, or did not complete. Not one of OpenAI's events, and sent only to
    /// clients that request it.
    #[serde(rename = "response.code_interpreter_call.failed")]
    InterpreterFailed { item_id: String, output_index: usize },
    /// A command starts. Events of commands have no id of their item.
    #[serde(rename = "response.shell_call_command.added")]
    ShellCommandAdded {
        output_index: usize,
        command_index: usize,
        command: String,
    },
    /// A piece of a command was added.
    #[serde(rename = "response.shell_call_command.delta")]
    ShellCommandDelta {
        output_index: usize,
        command_index: usize,
        delta: String,
    },
    /// A command is complete.
    #[serde(rename = "response.shell_call_command.done")]
    ShellCommandDone {
        output_index: usize,
        command_index: usize,
        command: String,
    },
    /// A command wrote text.
    #[serde(rename = "response.shell_call_output_content.delta")]
    ShellOutputDelta {
        item_id: String,
        output_index: usize,
        command_index: usize,
        delta: ShellDelta,
    },
    /// A command ended; the list has its output only.
    #[serde(rename = "response.shell_call_output_content.done")]
    ShellOutputDone {
        item_id: String,
        output_index: usize,
        command_index: usize,
        output: Vec<ShellOutput>,
    },
    /// A piece of a tool's text was added.
    #[serde(rename = "response.custom_tool_call_input.delta")]
    CustomInputDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// A tool's text is complete.
    #[serde(rename = "response.custom_tool_call_input.done")]
    CustomInputDone {
        item_id: String,
        output_index: usize,
        input: String,
    },
    /// The model writes a summary of the conversation.
    #[serde(rename = "response.compaction.compacting")]
    Compacting { item_id: String, output_index: usize },
    /// A server's tools are requested.
    #[serde(rename = "response.mcp_list_tools.in_progress")]
    McpListInProgress { item_id: String, output_index: usize },
    /// The server listed its tools.
    #[serde(rename = "response.mcp_list_tools.completed")]
    McpListCompleted { item_id: String, output_index: usize },
    /// The server did not list its tools.
    #[serde(rename = "response.mcp_list_tools.failed")]
    McpListFailed { item_id: String, output_index: usize },
    /// A call of a server's tool starts.
    #[serde(rename = "response.mcp_call.in_progress")]
    McpInProgress { item_id: String, output_index: usize },
    /// A piece of the call's arguments was added.
    #[serde(rename = "response.mcp_call_arguments.delta")]
    McpArgumentsDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// The call's arguments are complete.
    #[serde(rename = "response.mcp_call_arguments.done")]
    McpArgumentsDone {
        item_id: String,
        output_index: usize,
        arguments: String,
    },
    /// The call returned a result.
    #[serde(rename = "response.mcp_call.completed")]
    McpCompleted { item_id: String, output_index: usize },
    /// The call returned no result.
    #[serde(rename = "response.mcp_call.failed")]
    McpFailed { item_id: String, output_index: usize },
    /// An error occurred; `response.failed` follows.
    #[serde(rename = "error")]
    Error(StreamError),
}

/// Text that a command wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShellDelta {
    /// Text of stdout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Text of stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// An error within a stream, in both forms: OpenAI's flat one, and the nested one that SDKs raise
/// as an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError(pub ApiError);

impl Serialize for StreamError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ErrorPayload<'a> {
            code: &'a str,
            message: &'a str,
            param: Option<&'a str>,
            error: Fields<'a>,
        }
        let code = self.0.code.as_deref().unwrap_or(match self.0.kind {
            ErrorKind::InvalidRequestError | ErrorKind::TooLarge => "invalid_request_error",
            ErrorKind::NotFound => "not_found",
            ErrorKind::TooManyRequests => "rate_limit_exceeded",
            ErrorKind::ModelError
            | ErrorKind::ServerError
            | ErrorKind::Unavailable
            | ErrorKind::StorageFull => "server_error",
        });
        ErrorPayload {
            code,
            message: &self.0.message,
            param: self.0.param.as_deref(),
            error: Fields::from(&self.0),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_commands_counts_as_said() {
        let wrote = |stdout: Option<&str>, stderr: Option<&str>| EventKind::ShellOutputDelta {
            item_id: "sho_1".to_owned(),
            output_index: 1,
            command_index: 0,
            delta: ShellDelta {
                stdout: stdout.map(str::to_owned),
                stderr: stderr.map(str::to_owned),
            },
        };
        assert_eq!(wrote(Some("abc"), None).said(), 3);
        assert_eq!(wrote(Some("abc"), Some("ü")).said(), 5);
    }
}
