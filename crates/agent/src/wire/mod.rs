//! The wire forms of the Responses API and of Chat Completions, as real clients require them.
//!
//! - [`ResponseRequest`] is the body of `POST /v1/responses`; an error in one is an [`ApiError`] that names
//!   the parameter.
//! - [`Response`] and [`Item`] are the response; nullable keys are always present.
//! - [`ChatRequest`] is the body of `POST /v1/chat/completions`, read as a [`ResponseRequest`]; [`Pieces`]
//!   and [`Completion`] are its response.
//! - [`MessagesRequest`] is the body of `POST /v1/messages`, read as a [`ResponseRequest`];
//!   [`anthropic`] has its response.
//! - [`Draft`] writes a response step by step, and returns the [`StreamEvent`]s of each step in an order
//!   that clients accept.
//!
//! `code_interpreter_call` and its events have OpenAI's names, without a prefix; they occur only if
//! a request contains that tool.

pub mod anthropic;
mod approval;
mod call_kind;
mod call_report;
mod completion;
mod content;
mod custom;
mod dialect;
mod draft;
mod error;
mod event;
mod id;
mod item;
mod local_shell;
#[cfg(test)]
pub(crate) mod order;
mod patch;
mod pieces;
mod program;
mod prompt_cache;
mod report;
mod request;
mod response;
mod search;
mod shell;
mod skill;
#[cfg(test)]
mod tests;
mod tool;

pub(crate) use approval::{ApprovalAnswers, REQUEST_PREFIX, approved, arguments_of_code};
pub use approval::{ApprovalMode, ApprovalRule, McpApprovalRequest, McpApprovalResponse, check_approvals};
pub use call_kind::{CallKind, is_served_shell, served};
pub use call_report::{CallFault, CallReport};
pub use completion::Completion;
pub(crate) use content::texts;
pub use content::{Annotation, Part};
pub(crate) use custom::custom_input;
pub use custom::{CUSTOM_INPUT, CustomCall, CustomCallOutput, CustomFormat, CustomTool, GrammarSyntax};
pub use dialect::{Dialect, Numbers};
pub use draft::{
    CallSlot, Draft, InterpreterSlot, McpListSlot, McpSlot, MessageSlot, ReasoningSlot, ShellSlot,
};
pub use error::{ApiError, ErrorKind};
pub use event::{DONE, EventKind, ShellDelta, StreamError, StreamEvent};
pub use id::Ids;
pub use item::{
    CodeInterpreterCall, Compaction, FunctionCall, FunctionCallOutput, FunctionOutput, InterpreterOutput,
    Item, ItemReference, ItemStatus, ListedTool, McpCall, McpError, McpListTools, McpText, Message,
    Reasoning, Role, ToolCaller,
};
pub use local_shell::{LocalShellAction, LocalShellCall, LocalShellCallOutput};
pub use patch::{PatchCall, PatchCallOutput, PatchOperation};
pub use pieces::{ContentUrl, Piece, Pieces};
pub use program::{PausedProgram, Program, ProgramOutput, paused_programs, without_programs};
pub use prompt_cache::{PromptCache, PromptCacheOptions};
pub use report::{ReportedGap, TurnReport};
pub use request::{
    COMMANDS, ChatRequest, CompactionRequest, ConversationRequest, MessagesRequest, NetworkAllowlist,
    ResponseRequest, SamplingSettings,
};
pub use response::{
    CachedTokens, ConversationId, Failure, IncompleteReason, ReasoningOptions, ReasoningTokens, Response,
    ResponseStatus, Text, TextFormat, TokenUsage, Truncation,
};
pub(crate) use search::{MAX_DEFERRED, searches_as_functions};
pub use search::{SearchCall, SearchExecution, SearchOutput, SearchTool};
pub use shell::{
    LocalSkill, ShellAction, ShellCall, ShellCallOutput, ShellEnvironment, ShellOutcome, ShellOutput,
    ShellPlace,
};
pub(crate) use shell::{line, numbered};
pub use skill::{InlineSource, SkillRequest};
pub use tool::{
    AllowedCaller, AllowedMode, AllowedTools, AutoContainer, ChoiceMode, Container, Function, INTERPRETER,
    McpTool, Member, Namespace, Secrets, Tool, ToolChoice, ToolName, container, network_param,
};
