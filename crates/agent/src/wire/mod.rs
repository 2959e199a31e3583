//! The wire forms of the Responses API and of Chat Completions, as real clients require them.
//!
//! - [`Request`] is the body of `POST /v1/responses`; an error in one is an [`ApiError`] that names
//!   the parameter.
//! - [`Response`] and [`Item`] are the response; nullable keys are always present.
//! - [`ChatRequest`] is the body of `POST /v1/chat/completions`, read as a [`Request`]; [`Pieces`]
//!   and [`Completion`] are its response.
//! - [`Draft`] writes a response step by step, and returns the [`Event`]s of each step in an order
//!   that clients accept.
//!
//! `code_interpreter_call` and its events have OpenAI's names, without a prefix; they occur only if
//! a request contains that tool.

mod completion;
mod content;
mod dialect;
mod draft;
mod error;
mod event;
mod id;
mod item;
#[cfg(test)]
pub(crate) mod order;
mod pieces;
mod report;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tool;

pub use completion::Completion;
pub use content::{Annotation, Part};
pub use dialect::{Dialect, Numbers};
pub use draft::{CallSlot, Draft, InterpreterSlot, McpListSlot, McpSlot, MessageSlot, ReasoningSlot};
pub use error::{ApiError, ErrorKind};
pub use event::{DONE, Event, EventKind, StreamError};
pub use id::Ids;
pub use item::{
    CodeInterpreterCall, Compaction, FunctionCall, FunctionCallOutput, InterpreterOutput, Item,
    ItemReference, ItemStatus, ListedTool, McpCall, McpError, McpListTools, McpText, Message, Output,
    Reasoning, Role,
};
pub use pieces::{Address, Piece, Pieces};
pub use report::{Report, ReportedGap};
pub use request::{ChatRequest, ConversationRequest, Request, SamplingSettings};
pub use response::{
    CachedTokens, ConversationId, Failure, Incomplete, ReasoningOptions, ReasoningTokens, Response,
    ResponseStatus, Text, TextFormat, Truncation, Usage,
};
pub use tool::{
    AllowedMode, AllowedTools, AutoContainer, ChoiceMode, Container, Function, McpTool, Member, Namespace,
    Secrets, Tool, ToolChoice, ToolName,
};
