//! The response object. All its keys are always present; the official compliance suite requires
//! each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::item::Item;
use super::prompt_cache::PromptCache;
use super::report::TurnReport;
use super::request::ResponseRequest;
use super::tool::{Tool, ToolChoice};

/// A response, with the settings of its request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// `resp_…`.
    pub id: String,
    /// Always `response`.
    pub object: String,
    /// Creation time in seconds since 1970.
    pub created_at: u64,
    /// Completion time in seconds since 1970.
    pub completed_at: Option<u64>,
    /// Progress.
    pub status: ResponseStatus,
    /// The reason why it ended early.
    pub incomplete_details: Option<IncompleteReason>,
    /// The model.
    pub model: String,
    /// Id of the response that it continues.
    pub previous_response_id: Option<String>,
    /// The conversation that it continued; omitted if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The application's instructions to the model.
    pub instructions: Option<String>,
    /// Items of the response.
    pub output: Vec<Item>,
    /// The error.
    pub error: Option<Failure>,
    /// Tools that were offered.
    pub tools: Vec<Tool>,
    /// Selection of the tools that may or must be called.
    pub tool_choice: ToolChoice,
    /// Whether a conversation that is too long may be truncated.
    pub truncation: Truncation,
    /// Whether several tools may be called at once.
    pub parallel_tool_calls: bool,
    /// Format of the answer.
    pub text: Text,
    /// Sampling among the most probable tokens, 0 to 1.
    pub top_p: f64,
    /// Penalty for tokens that occurred before, -2 to 2.
    pub presence_penalty: f64,
    /// Penalty for tokens that occurred often, -2 to 2.
    pub frequency_penalty: f64,
    /// Number of alternatives with probabilities.
    pub top_logprobs: u32,
    /// Sampling temperature, 0 to 2.
    pub temperature: f64,
    /// Reasoning settings.
    pub reasoning: ReasoningOptions,
    /// Token usage; null until the response ends.
    pub usage: Option<TokenUsage>,
    /// Maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// Maximum number of calls of hosted tools.
    pub max_tool_calls: Option<u64>,
    /// Whether it is stored.
    pub store: bool,
    /// Whether it continues without the client.
    pub background: bool,
    /// The requested service tier, or `default`.
    pub service_tier: String,
    /// The client's metadata.
    pub metadata: BTreeMap<String, String>,
    /// The client's name for its user.
    pub safety_identifier: Option<String>,
    /// The client's key for cached prompts.
    pub prompt_cache_key: Option<String>,
    /// Other hints for cached prompts; omitted if there are none.
    #[serde(flatten)]
    pub prompt_cache: PromptCache,
    /// Report of a turn that had tools for fetching. Not one of OpenAI's keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellblock: Option<Box<TurnReport>>,
}

impl Response {
    /// Creates the initial response to a request.
    pub fn new(request: &ResponseRequest, id: String, created_at: u64) -> Self {
        let request = request.clone();
        Self {
            id,
            object: "response".to_owned(),
            created_at,
            completed_at: None,
            status: ResponseStatus::InProgress,
            incomplete_details: None,
            model: request.model,
            previous_response_id: request.previous_response_id,
            conversation: request.conversation.map(|id| ConversationId { id }),
            instructions: request.instructions,
            output: Vec::new(),
            error: None,
            tools: request.tools,
            tool_choice: request.tool_choice,
            truncation: request.truncation,
            parallel_tool_calls: request.parallel_tool_calls,
            text: request.text,
            top_p: request.sampling.top_p.unwrap_or(1.0),
            presence_penalty: request.sampling.presence_penalty.unwrap_or(0.0),
            frequency_penalty: request.sampling.frequency_penalty.unwrap_or(0.0),
            top_logprobs: request.top_logprobs.unwrap_or(0),
            temperature: request.sampling.temperature.unwrap_or(1.0),
            reasoning: request.reasoning,
            usage: None,
            max_output_tokens: request.max_output_tokens,
            max_tool_calls: request.max_tool_calls,
            store: request.store,
            background: request.background,
            service_tier: request.service_tier.unwrap_or_else(|| "default".to_owned()),
            metadata: request.metadata,
            safety_identifier: request.safety_identifier,
            prompt_cache_key: request.prompt_cache_key,
            prompt_cache: request.prompt_cache,
            cellblock: None,
        }
    }
}

/// A conversation, identified by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationId {
    /// `conv_…`.
    pub id: String,
}

/// Progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// The response is queued.
    Queued,
    /// The response is in progress.
    InProgress,
    /// The response is complete.
    Completed,
    /// The response ended early.
    Incomplete,
    /// The response failed.
    Failed,
    /// The client canceled the response.
    Cancelled,
}

/// The reason why a response ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompleteReason {
    /// `max_output_tokens`, `content_filter`, `max_tool_calls`.
    pub reason: String,
}

/// The error of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// `server_error`, `rate_limit_exceeded`, `invalid_prompt`, ….
    pub code: String,
    /// Message for people.
    pub message: String,
}

/// Whether a conversation that is too long may be truncated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// Items in the middle may be dropped.
    Auto,
    /// A conversation that is too long is an error.
    #[default]
    Disabled,
}

/// Format of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// Its format.
    pub format: TextFormat,
    /// Verbosity: `low`, `medium`, `high`. Omitted if unspecified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// Format of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextFormat {
    /// Plain text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that conforms to a schema.
    JsonSchema {
        /// Name of the schema.
        name: String,
        /// Purpose of the answer.
        description: Option<String>,
        /// The schema.
        schema: Map<String, Value>,
        /// Whether the answer must match the schema exactly.
        strict: Option<bool>,
    },
}

/// Reasoning settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningOptions {
    /// Effort: `minimal`, `low`, `medium`, `high`, ….
    pub effort: Option<String>,
    /// Kind of summary: `auto`, `concise`, `detailed`.
    pub summary: Option<String>,
    /// Earlier reasoning that the model reads: `auto`, `current_turn` or `all_turns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Kind of reasoning: `standard` or `pro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the sealed form is requested, by `reasoning.encrypted_content` in `include`.
    #[serde(skip)]
    pub sealed: bool,
}

/// Token usage of a response, over all its model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Cached part of the input tokens.
    pub input_tokens_details: CachedTokens,
    /// Output tokens.
    pub output_tokens: u64,
    /// Reasoning part of the output tokens.
    pub output_tokens_details: ReasoningTokens,
    /// Total of both.
    pub total_tokens: u64,
}

/// Cached input tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTokens {
    /// Tokens read from the cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens written to the cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

/// Output tokens used for reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningTokens {
    /// Reasoning tokens.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, more: Self) {
        // A provider's counts are not trusted, so sums saturate rather than overflow.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        let (input, output) = (&mut self.input_tokens_details, &mut self.output_tokens_details);
        add(&mut self.input_tokens, more.input_tokens);
        add(&mut input.cached_tokens, more.input_tokens_details.cached_tokens);
        add(
            &mut input.cache_write_tokens,
            more.input_tokens_details.cache_write_tokens,
        );
        add(&mut self.output_tokens, more.output_tokens);
        add(
            &mut output.reasoning_tokens,
            more.output_tokens_details.reasoning_tokens,
        );
        add(&mut self.total_tokens, more.total_tokens);
    }
}
