//! The response object. All its keys are always there; the official compliance suite wants each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::item::Item;
use super::report::Report;
use super::request::Request;
use super::tool::{Tool, ToolChoice};

/// A response: what was asked for, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// `resp_…`.
    pub id: String,
    /// Always `response`.
    pub object: String,
    /// When it began, in seconds since 1970.
    pub created_at: u64,
    /// When it was whole.
    pub completed_at: Option<u64>,
    /// How far it is.
    pub status: ResponseStatus,
    /// Why it was cut short.
    pub incomplete_details: Option<Incomplete>,
    /// The model.
    pub model: String,
    /// The response that it goes on from.
    pub previous_response_id: Option<String>,
    /// The conversation that it went on in; left out where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// What the application tells the model.
    pub instructions: Option<String>,
    /// What came of it.
    pub output: Vec<Item>,
    /// The error.
    pub error: Option<Failure>,
    /// Tools that were offered.
    pub tools: Vec<Tool>,
    /// Which of them may or must be chosen.
    pub tool_choice: ToolChoice,
    /// Whether a conversation that is too long may be cut.
    pub truncation: Truncation,
    /// Whether several tools may be called at once.
    pub parallel_tool_calls: bool,
    /// The form of the answer.
    pub text: Text,
    /// Sampling among the most probable tokens, 0 to 1.
    pub top_p: f64,
    /// Against what was said already, -2 to 2.
    pub presence_penalty: f64,
    /// Against what was said often, -2 to 2.
    pub frequency_penalty: f64,
    /// Alternatives whose probabilities are given.
    pub top_logprobs: u32,
    /// How freely the model samples, 0 to 2.
    pub temperature: f64,
    /// How the model thinks.
    pub reasoning: ReasoningOptions,
    /// Tokens; null until it ends.
    pub usage: Option<Usage>,
    /// The most tokens of output.
    pub max_output_tokens: Option<u64>,
    /// The most calls of hosted tools.
    pub max_tool_calls: Option<u64>,
    /// Whether it is kept.
    pub store: bool,
    /// Whether it goes on without the client.
    pub background: bool,
    /// What the client asked for, or `default`.
    pub service_tier: String,
    /// The client's notes.
    pub metadata: BTreeMap<String, String>,
    /// The client's name for its user.
    pub safety_identifier: Option<String>,
    /// The client's name for what it repeats.
    pub prompt_cache_key: Option<String>,
    /// What the turn came to, where it had tools to fetch with. No key of OpenAI's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cellblock: Option<Box<Report>>,
}

impl Response {
    /// The response to a request, before anything came of it.
    pub fn new(request: &Request, id: String, created_at: u64) -> Self {
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
            top_p: request.top_p.unwrap_or(1.0),
            presence_penalty: request.presence_penalty.unwrap_or(0.0),
            frequency_penalty: request.frequency_penalty.unwrap_or(0.0),
            top_logprobs: request.top_logprobs.unwrap_or(0),
            temperature: request.temperature.unwrap_or(1.0),
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
            cellblock: None,
        }
    }
}

/// A conversation by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationId {
    /// `conv_…`.
    pub id: String,
}

/// How far a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// It waits.
    Queued,
    /// It is being written.
    InProgress,
    /// It is whole.
    Completed,
    /// It was cut short.
    Incomplete,
    /// Something went wrong.
    Failed,
    /// The client stopped it.
    Cancelled,
}

/// Why a response was cut short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// `max_output_tokens`, `content_filter`, `max_tool_calls`.
    pub reason: String,
}

/// What went wrong with a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// `server_error`, `rate_limit_exceeded`, `invalid_prompt`, ….
    pub code: String,
    /// In words.
    pub message: String,
}

/// Whether a conversation that is too long may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// It may, in the middle.
    Auto,
    /// It may not, and is an error.
    #[default]
    Disabled,
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// Its format.
    pub format: TextFormat,
    /// How long it is: `low`, `medium`, `high`. Left out where it was not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// The format of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextFormat {
    /// Words.
    #[default]
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON by a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The schema.
        schema: Map<String, Value>,
        /// Whether the answer keeps to it exactly.
        strict: Option<bool>,
    },
}

/// How the model thinks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningOptions {
    /// How much: `minimal`, `low`, `medium`, `high`, ….
    pub effort: Option<String>,
    /// What it shows of it: `auto`, `concise`, `detailed`.
    pub summary: Option<String>,
    /// Whether it is wanted in the form that only its provider reads, as `reasoning.encrypted_content` in `include` says.
    #[serde(skip)]
    pub sealed: bool,
}

/// Tokens that a response took, over all its model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of input.
    pub input_tokens: u64,
    /// Among them.
    pub input_tokens_details: CachedTokens,
    /// Of output.
    pub output_tokens: u64,
    /// Among them.
    pub output_tokens_details: ReasoningTokens,
    /// Of both.
    pub total_tokens: u64,
}

/// Tokens of input that the provider had seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTokens {
    /// Read from its cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Written to it.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

/// Tokens of output that the model thought with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningTokens {
    /// Them.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        // What a provider counts is its allegation, so sums are bounded rather than checked.
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
