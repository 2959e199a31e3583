//! Fields in which servers differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fields that a Chat Completions server accepts; servers differ in these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dialect")]
#[serde(default, deny_unknown_fields)]
pub struct ChatDialect {
    /// Field for the maximum number of tokens.
    pub max_tokens_field: MaxTokensField,
    /// Role of instructions.
    pub system_role: SystemRole,
    /// Whether, and in which field, reasoning is sent back to models that need it between their
    /// calls.
    pub send_reasoning: SendReasoning,
    /// Whether to request the token usage of a stream.
    pub stream_usage: bool,
    /// Whether the server supports `parallel_tool_calls`; it is sent only if a request forbids
    /// parallel calls.
    pub parallel_tool_calls: bool,
    /// Whether the server supports `strict` in a function; it is sent only if a request sets it.
    pub strict: bool,
}

impl Default for ChatDialect {
    fn default() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            system_role: SystemRole::System,
            send_reasoning: SendReasoning::Never,
            stream_usage: true,
            parallel_tool_calls: true,
            strict: true,
        }
    }
}

/// Field for the maximum number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// Used by most servers.
    MaxTokens,
    /// Required by newer OpenAI models.
    MaxCompletionTokens,
}

impl MaxTokensField {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Whether, and in which field, reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendReasoning {
    /// Do not send it: some servers reject it.
    Never,
    /// In the field in which the server sent it.
    Same,
    /// In `reasoning`.
    Reasoning,
    /// In `reasoning_content`.
    ReasoningContent,
}

/// Role of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// Used by most servers.
    System,
    /// Required by newer OpenAI models.
    Developer,
}

impl SystemRole {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}
