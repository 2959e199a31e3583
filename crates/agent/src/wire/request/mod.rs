//! The body of `POST /v1/responses`. Unknown fields are ignored, because SDKs keep adding new ones.

mod anthropic;
mod approval;
mod chat;
mod compaction;
mod conversation;
mod custom;
mod fields;
mod hints;
mod input;
mod items;
mod local_shell;
mod mcp;
mod messages;
mod namespace;
mod network;
mod patch;
mod program;
mod sampling;
mod search;
mod shell;
mod skills;
mod tools;
mod unsupported;

use std::collections::BTreeMap;

use serde_json::Value;

pub use anthropic::{COMMANDS, MessagesRequest};
pub use chat::ChatRequest;
pub use compaction::CompactionRequest;
pub use conversation::ConversationRequest;
pub use network::NetworkAllowlist;
pub use sampling::SamplingSettings;

use fields::{Fields, RequestFields as _};
use input::RequestInput;

use super::error::{ApiError, ErrorKind};
use super::id::Ids;
use super::item::Item;
use super::prompt_cache::PromptCache;
use super::response::{ReasoningOptions, Text, TextFormat, Truncation};
use super::tool::{Tool, ToolChoice};

/// A request to the Responses API.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the API has these switches, each by its name"
)]
pub struct ResponseRequest {
    /// Name of the model.
    pub model: String,
    /// Input of the request; a plain text becomes a message of the user.
    pub input: Vec<Item>,
    /// The application's instructions to the model.
    pub instructions: Option<String>,
    /// Tools.
    pub tools: Vec<Tool>,
    /// Selection of the tools that may or must be called; each is among [`tools`](Self::tools).
    pub tool_choice: ToolChoice,
    /// Whether several tools may be called at once; true by default.
    pub parallel_tool_calls: bool,
    /// Maximum number of calls of hosted tools.
    pub max_tool_calls: Option<u64>,
    /// Maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// Id of the response that it continues.
    pub previous_response_id: Option<String>,
    /// Id of the conversation that it continues.
    pub conversation: Option<String>,
    /// Whether it is stored; true by default.
    pub store: bool,
    /// Whether its events are streamed.
    pub stream: bool,
    /// Whether it continues without the client.
    pub background: bool,
    /// Additional data to include, such as `code_interpreter_call.outputs`.
    pub include: Vec<String>,
    /// The client's metadata.
    pub metadata: BTreeMap<String, String>,
    /// Format of the answer.
    pub text: Text,
    /// Reasoning settings.
    pub reasoning: ReasoningOptions,
    /// Whether a conversation that is too long may be truncated.
    pub truncation: Truncation,
    /// Whether the conversation is compacted.
    pub compaction: CompactionRequest,
    /// Sampling settings.
    pub sampling: SamplingSettings,
    /// Number of alternatives with probabilities, 0 to 20.
    pub top_logprobs: Option<u32>,
    /// The provider's service tier.
    pub service_tier: Option<String>,
    /// The client's name for its user.
    pub safety_identifier: Option<String>,
    /// The client's key for cached prompts.
    pub prompt_cache_key: Option<String>,
    /// Other hints for cached prompts.
    pub prompt_cache: PromptCache,
    /// The client's older name for its user.
    pub user: Option<String>,
}

impl ResponseRequest {
    /// Parses a body. Items without an id get one.
    pub fn parse(body: &[u8], ids: &mut Ids) -> Result<Self, ApiError> {
        Self::read(&top(&json(body)?)?, ids)
    }

    /// Returns whether the response includes the outputs of code.
    pub fn includes_outputs(&self) -> bool {
        self.include
            .iter()
            .any(|name| name == "code_interpreter_call.outputs")
    }

    fn read(fields: &Fields<'_>, ids: &mut Ids) -> Result<Self, ApiError> {
        unsupported::fields(fields)?;
        hints::check(fields)?;
        let tools = tools::tools(fields, tools::tool)?;
        let background = fields.flag("background")?.unwrap_or(false);
        let store = fields.flag("store")?.unwrap_or(true);
        if background && !store {
            let message =
                "`background` requires `store`: the response of a background request must be stored";
            return Err(ApiError::invalid("background", "invalid_value", message));
        }
        // In range and without a fraction.
        fields.number("top_logprobs", 0.0, 20.0)?;
        let top_logprobs = fields.count("top_logprobs", 0)?;
        let input = RequestInput::of(fields, ids)?;
        let (mut text, mut reasoning) = (text(fields)?, reasoning(fields)?);
        text.format = input.format.unwrap_or(text.format);
        reasoning.effort = input.effort.or(reasoning.effort);
        Ok(Self {
            model: fields.required("model")?,
            input: input.items,
            instructions: fields.text("instructions")?,
            tool_choice: tools::choice(fields, &tools, tools::chosen)?,
            tools,
            parallel_tool_calls: fields.flag("parallel_tool_calls")?.unwrap_or(true),
            max_tool_calls: fields.count("max_tool_calls", 1)?,
            max_output_tokens: fields.count("max_output_tokens", 1)?,
            previous_response_id: fields.text("previous_response_id")?,
            conversation: conversation(fields)?,
            store,
            stream: fields.flag("stream")?.unwrap_or(false),
            background,
            include: fields.texts("include")?,
            metadata: fields.notes("metadata")?,
            text,
            reasoning,
            truncation: truncation(fields)?,
            compaction: CompactionRequest {
                now: input.compacts,
                threshold: compaction::threshold(fields)?,
            },
            sampling: SamplingSettings::read(fields)?,
            top_logprobs: top_logprobs.and_then(|count| u32::try_from(count).ok()),
            service_tier: fields.text("service_tier")?,
            safety_identifier: fields.text("safety_identifier")?,
            prompt_cache_key: fields.text("prompt_cache_key")?,
            prompt_cache: hints::prompt_cache(fields)?,
            user: fields.text("user")?,
        })
    }
}

fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("invalid_json".to_owned()),
        message: format!("the body is not JSON: {error}"),
        param: None,
    })
}

/// Parses the top level of a body.
fn top(body: &Value) -> Result<Fields<'_>, ApiError> {
    Fields::of(body, "").map_err(|error| ApiError {
        message: "the body must be a JSON object".to_owned(),
        param: None,
        ..error
    })
}

/// Parses the conversation that a request continues: its id, or an object with it.
fn conversation(fields: &Fields<'_>) -> Result<Option<String>, ApiError> {
    let id = match fields.get("conversation") {
        None => return Ok(None),
        Some(Value::String(id)) => id.clone(),
        Some(value) => Fields::of(value, "conversation")?.required("id")?,
    };
    if fields.get("previous_response_id").is_some() {
        let message = "`conversation` and `previous_response_id` exclude each other: send one of the two";
        return Err(ApiError::invalid(
            "conversation",
            "mutually_exclusive_parameters",
            message,
        ));
    }
    Ok(Some(id))
}

fn truncation(fields: &Fields<'_>) -> Result<Truncation, ApiError> {
    match fields.text("truncation")?.as_deref() {
        None | Some("disabled") => Ok(Truncation::Disabled),
        Some("auto") => Ok(Truncation::Auto),
        Some(other) => Err(fields.unknown("truncation", other, "`auto` or `disabled`")),
    }
}

fn reasoning(fields: &Fields<'_>) -> Result<ReasoningOptions, ApiError> {
    let include = fields.texts("include")?;
    let sealed = include.iter().any(|name| name == "reasoning.encrypted_content");
    let Some(fields) = fields.fields("reasoning")? else {
        return Ok(ReasoningOptions {
            sealed,
            ..ReasoningOptions::default()
        });
    };
    Ok(ReasoningOptions {
        effort: fields.text("effort")?,
        summary: fields.text("summary")?,
        context: fields.text("context")?,
        mode: fields.text("mode")?,
        sealed,
    })
}

fn text(fields: &Fields<'_>) -> Result<Text, ApiError> {
    let Some(fields) = fields.fields("text")? else {
        return Ok(Text::default());
    };
    let verbosity = fields.text("verbosity")?;
    let Some(format) = fields.fields("format")? else {
        let format = TextFormat::Text;
        return Ok(Text { format, verbosity });
    };
    let format = self::format(&format, None)?;
    Ok(Text { format, verbosity })
}

/// Parses the format of the answer; a schema is in it, or in its field `nested`.
fn format(fields: &Fields<'_>, nested: Option<&str>) -> Result<TextFormat, ApiError> {
    Ok(match fields.required("type")?.as_str() {
        "text" => TextFormat::Text,
        "json_object" => TextFormat::JsonObject,
        "json_schema" => {
            let form = match nested {
                Some(key) => fields.required_fields(key)?,
                None => fields.clone(),
            };
            TextFormat::JsonSchema {
                name: tools::name(&form, "name")?,
                description: form.text("description")?,
                schema: form.object("schema")?.ok_or_else(|| form.missing("schema"))?,
                strict: form.flag("strict")?,
            }
        }
        other => return Err(fields.unknown("type", other, "`text`, `json_object` or `json_schema`")),
    })
}
