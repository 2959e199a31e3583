//! Events of a streamed response, and how they are framed.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::content::{Annotation, Part};
use super::error::{ApiError, ErrorKind, Fields};
use super::item::Item;
use super::response::Response;

/// What ends a stream, after its last event.
pub const DONE: &str = "data: [DONE]\n\n";

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Its number in the stream, from 0 and without gaps.
    pub sequence_number: u64,
}

impl Event {
    /// The event as JSON.
    pub fn json(&self) -> String {
        // Neither a map without string keys nor a failing writer is involved.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as one frame of a `text/event-stream`. Write it at once: some clients lose a frame that arrives in two pieces.
    pub fn frame(&self) -> String {
        let body = self.json();
        // The tag comes first, so that the name is the second string.
        let name = body.split('"').nth(3).unwrap_or_default();
        format!("event: {name}\ndata: {body}\n\n")
    }
}

impl EventKind {
    /// The response, if nothing comes after this.
    pub fn last(&self) -> Option<&Response> {
        match self {
            Self::Completed { response } | Self::Incomplete { response } | Self::Failed { response } => {
                Some(response)
            }
            _ => None,
        }
    }

    /// How many bytes were added to what the model says, thinks or writes.
    pub fn said(&self) -> usize {
        match self {
            Self::TextDelta { delta, .. }
            | Self::RefusalDelta { delta, .. }
            | Self::ReasoningDelta { delta, .. }
            | Self::ArgumentsDelta { delta, .. }
            | Self::McpArgumentsDelta { delta, .. }
            | Self::CodeDelta { delta, .. } => delta.len(),
            _ => 0,
        }
    }
}

/// What happened. Items are meant by their place in the output and their id, parts by their place in the item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
#[expect(
    missing_docs,
    reason = "fields are the same in each: the text added or the text as a whole, and where"
)]
pub enum EventKind {
    /// The response exists.
    #[serde(rename = "response.created")]
    Created { response: Box<Response> },
    /// It waits for its turn.
    #[serde(rename = "response.queued")]
    Queued { response: Box<Response> },
    /// It is being written.
    #[serde(rename = "response.in_progress")]
    InProgress { response: Box<Response> },
    /// It is whole.
    #[serde(rename = "response.completed")]
    Completed { response: Box<Response> },
    /// It was cut short.
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Box<Response> },
    /// Something went wrong.
    #[serde(rename = "response.failed")]
    Failed { response: Box<Response> },
    /// An item begins; it is empty but for what is known already.
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: usize, item: Box<Item> },
    /// An item is as it will stay.
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: usize, item: Box<Item> },
    /// A part of a message or of reasoning begins.
    #[serde(rename = "response.content_part.added")]
    PartAdded {
        item_id: String,
        output_index: usize,
        content_index: usize,
        part: Part,
    },
    /// A part is as it will stay.
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
    /// A text is whole.
    #[serde(rename = "response.output_text.done")]
    TextDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
        logprobs: Vec<Value>,
    },
    /// A range of a text refers to something.
    #[serde(rename = "response.output_text.annotation.added")]
    AnnotationAdded {
        item_id: String,
        output_index: usize,
        content_index: usize,
        annotation_index: usize,
        annotation: Annotation,
    },
    /// A refusal was added to.
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// A refusal is whole.
    #[serde(rename = "response.refusal.done")]
    RefusalDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        refusal: String,
    },
    /// Reasoning was added. OpenAI's name: its SDK for Node refuses others.
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// Reasoning is whole.
    #[serde(rename = "response.reasoning_text.done")]
    ReasoningDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
    },
    /// Reasoning was added, by the name that Open Responses has for it.
    #[serde(rename = "response.reasoning.delta")]
    OpenReasoningDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
    },
    /// Reasoning is whole, by that name.
    #[serde(rename = "response.reasoning.done")]
    OpenReasoningDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
    },
    /// Arguments of a function were added.
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// They are whole.
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        item_id: String,
        output_index: usize,
        name: String,
        arguments: String,
    },
    /// A call of the interpreter begins.
    #[serde(rename = "response.code_interpreter_call.in_progress")]
    InterpreterInProgress { item_id: String, output_index: usize },
    /// Code was added.
    #[serde(rename = "response.code_interpreter_call_code.delta")]
    CodeDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// The code is whole.
    #[serde(rename = "response.code_interpreter_call_code.done")]
    CodeDone {
        item_id: String,
        output_index: usize,
        code: String,
    },
    /// It runs.
    #[serde(rename = "response.code_interpreter_call.interpreting")]
    InterpreterInterpreting { item_id: String, output_index: usize },
    /// It ran to its end.
    #[serde(rename = "response.code_interpreter_call.completed")]
    InterpreterCompleted { item_id: String, output_index: usize },
    /// It was not run, or not to its end. Not one of OpenAI's, and told only to clients that ask for it.
    #[serde(rename = "response.code_interpreter_call.failed")]
    InterpreterFailed { item_id: String, output_index: usize },
    /// A server is asked for its tools.
    #[serde(rename = "response.mcp_list_tools.in_progress")]
    McpListInProgress { item_id: String, output_index: usize },
    /// It has told them.
    #[serde(rename = "response.mcp_list_tools.completed")]
    McpListCompleted { item_id: String, output_index: usize },
    /// It has not.
    #[serde(rename = "response.mcp_list_tools.failed")]
    McpListFailed { item_id: String, output_index: usize },
    /// A call of a server's tool begins.
    #[serde(rename = "response.mcp_call.in_progress")]
    McpInProgress { item_id: String, output_index: usize },
    /// Arguments of it were added.
    #[serde(rename = "response.mcp_call_arguments.delta")]
    McpArgumentsDelta {
        item_id: String,
        output_index: usize,
        delta: String,
    },
    /// They are whole.
    #[serde(rename = "response.mcp_call_arguments.done")]
    McpArgumentsDone {
        item_id: String,
        output_index: usize,
        arguments: String,
    },
    /// It gave a result.
    #[serde(rename = "response.mcp_call.completed")]
    McpCompleted { item_id: String, output_index: usize },
    /// It gave none.
    #[serde(rename = "response.mcp_call.failed")]
    McpFailed { item_id: String, output_index: usize },
    /// Something went wrong; `response.failed` follows.
    #[serde(rename = "error")]
    Error(StreamError),
}

/// An error within a stream, in both forms at once: OpenAI's flat one, and the nested one that makes SDKs raise it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError(pub ApiError);

impl Serialize for StreamError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Both<'a> {
            code: &'a str,
            message: &'a str,
            param: Option<&'a str>,
            error: Fields<'a>,
        }
        let code = self.0.code.as_deref().unwrap_or(match self.0.kind {
            ErrorKind::InvalidRequestError | ErrorKind::TooLarge => "invalid_request_error",
            ErrorKind::NotFound => "not_found",
            ErrorKind::TooManyRequests => "rate_limit_exceeded",
            ErrorKind::ModelError | ErrorKind::ServerError => "server_error",
        });
        Both {
            code,
            message: &self.0.message,
            param: self.0.param.as_deref(),
            error: Fields::from(&self.0),
        }
        .serialize(serializer)
    }
}
