//! The body of `POST /v1/messages`, Anthropic's API, read as a request of the Responses API.
//!
//! ```text
//! messages ──blocks──> items          tools, tool_choice, container ──tools──> tools of the loop
//!     └ results ─> items of code that ran earlier
//! ```

mod blocks;
mod results;
mod tools;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use super::skills;
use super::{CompactionRequest, ResponseRequest, SamplingSettings};
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::Item;
use crate::wire::prompt_cache::PromptCache;
use crate::wire::response::{ReasoningOptions, Text, TextFormat, Truncation};
use crate::wire::skill::SkillRequest;

pub use tools::COMMANDS;

/// The name of a schema, which this API does not name.
const SCHEMA: &str = "output";

/// A request of Anthropic's Messages API.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagesRequest {
    /// The equivalent request of the Responses API.
    pub request: ResponseRequest,
    /// Whether the client wants to see the model's thinking.
    pub thinking: bool,
    /// Version of the code execution tool, as the caller of the client's tools in code.
    pub caller: &'static str,
    /// Ids of items of code that waits for results in this request.
    pub waiting: Vec<String>,
    /// Skills that the container must have.
    pub skills: Vec<SkillRequest>,
}

impl MessagesRequest {
    /// Parses a body.
    pub fn parse(body: &[u8], ids: &mut Ids) -> Result<Self, ApiError> {
        Self::read(&super::top(&super::json(body)?)?, ids, true)
    }

    /// Parses the body of a request that only counts tokens, which has no `max_tokens`.
    /// Code that waits goes on only in a request that is answered, so its calls are left out.
    pub fn parse_counted(body: &[u8], ids: &mut Ids) -> Result<Self, ApiError> {
        let mut read = Self::read(&super::top(&super::json(body)?)?, ids, false)?;
        let input = &mut read.request.input;
        let by_code: HashSet<String> = input
            .iter()
            .filter_map(|item| match item {
                Item::FunctionCall(call) if call.caller.is_some() => Some(call.call_id.clone()),
                _ => None,
            })
            .collect();
        input.retain(|item| match item {
            Item::FunctionCall(call) => call.caller.is_none(),
            Item::FunctionCallOutput(output) => !by_code.contains(&output.call_id),
            Item::CodeInterpreterCall(call) => !call.status.is_running(),
            _ => true,
        });
        Ok(read)
    }

    fn read(fields: &Fields<'_>, ids: &mut Ids, generates: bool) -> Result<Self, ApiError> {
        unsupported(fields)?;
        let (container, skills) = container(fields)?;
        let offered = tools::offered(fields, container.clone(), &skills)?;
        let input = blocks::messages(fields, ids, container.as_deref(), offered.runs_code())?;
        let waiting = waiting(&input);
        let max_tokens = fields.count("max_tokens", 1)?;
        if generates && max_tokens.is_none() {
            return Err(fields.missing("max_tokens"));
        }
        let settings = fields.fields("output_config")?;
        let effort = settings
            .as_ref()
            .map_or(Ok(None), |settings| settings.text("effort"))?;
        let (tool_choice, parallel_tool_calls) = tools::choice(fields, &offered)?;
        let metadata = fields.fields("metadata")?;
        let user = metadata.map_or(Ok(None), |metadata| metadata.text("user_id"))?;
        let request = ResponseRequest {
            model: fields.required("model")?,
            input,
            instructions: system(fields)?,
            tools: offered.tools,
            tool_choice,
            parallel_tool_calls,
            max_tool_calls: None,
            max_output_tokens: max_tokens,
            previous_response_id: None,
            conversation: None,
            store: false,
            stream: fields.flag("stream")?.unwrap_or(false),
            background: false,
            include: Vec::new(),
            metadata: BTreeMap::new(),
            text: format(fields, settings.as_ref())?,
            reasoning: ReasoningOptions {
                effort,
                ..ReasoningOptions::default()
            },
            truncation: Truncation::Disabled,
            compaction: CompactionRequest::default(),
            sampling: SamplingSettings {
                temperature: fields.number("temperature", 0.0, 1.0)?,
                top_p: fields.number("top_p", 0.0, 1.0)?,
                stop: fields.texts("stop_sequences")?,
                ..SamplingSettings::default()
            },
            top_logprobs: None,
            service_tier: None,
            safety_identifier: None,
            prompt_cache_key: None,
            prompt_cache: PromptCache::default(),
            user,
        };
        Ok(Self {
            request,
            thinking: thinking(fields)?,
            caller: offered.version.map_or(tools::CALLER, tools::Version::caller),
            waiting,
            skills,
        })
    }
}

/// Rejects fields that would change the answer if they were ignored, with the alternative.
fn unsupported(fields: &Fields<'_>) -> Result<(), ApiError> {
    if !fields.list("mcp_servers")?.is_empty() {
        let message = "`mcp_servers` is not supported here: send it as a tool of `/v1/responses`, or ask \
                       the operator to configure the server";
        return Err(ApiError::invalid("mcp_servers", "unsupported_parameter", message));
    }
    Ok(())
}

/// Parses `container`: an id, or an object with one and with skills.
fn container(fields: &Fields<'_>) -> Result<(Option<String>, Vec<SkillRequest>), ApiError> {
    let container = match fields.get("container") {
        None => return Ok((None, Vec::new())),
        Some(Value::String(id)) => return Ok((Some(id.clone()), Vec::new())),
        Some(value @ Value::Object(_)) => Fields::of(value, "container")?,
        Some(_) => return Err(fields.wrong("container", "a container's id or an object")),
    };
    Ok((container.text("id")?, skills::of_container(&container)?))
}

/// Parses `system`: a text, or blocks of text.
fn system(fields: &Fields<'_>) -> Result<Option<String>, ApiError> {
    let text = blocks::texts(fields, "system")?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn thinking(fields: &Fields<'_>) -> Result<bool, ApiError> {
    let Some(thinking) = fields.fields("thinking")? else {
        return Ok(false);
    };
    Ok(thinking.required("type")? != "disabled")
}

/// Parses the format of the answer, of which this API knows one beside text.
fn format(fields: &Fields<'_>, settings: Option<&Fields<'_>>) -> Result<Text, ApiError> {
    let format = settings.map_or(Ok(None), |settings| settings.fields("format"))?;
    let Some(format) = format.or(fields.fields("output_format")?) else {
        return Ok(Text::default());
    };
    match format.required("type")?.as_str() {
        "json_schema" => Ok(Text {
            format: TextFormat::JsonSchema {
                name: SCHEMA.to_owned(),
                description: None,
                schema: format.object("schema")?.ok_or_else(|| format.missing("schema"))?,
                strict: Some(true),
            },
            verbosity: None,
        }),
        other => Err(format.unknown("type", other, "`json_schema`")),
    }
}

/// Returns the ids of items of code that has no result yet.
fn waiting(input: &[Item]) -> Vec<String> {
    let waiting = input.iter().filter_map(|item| match item {
        Item::CodeInterpreterCall(call) if call.status.is_running() => Some(call.id.clone()),
        _ => None,
    });
    waiting.collect()
}
