//! The body of `POST /v1/chat/completions`, read as a request of the Responses API.

use cellblock_settings::json::INTEGER;
use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use super::{CompactionRequest, ResponseRequest, SamplingSettings, messages, tools};
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::prompt_cache::PromptCache;
use crate::wire::response::{ReasoningOptions, Text, TextFormat, Truncation};
use crate::wire::tool::{AutoContainer, Container, Tool, ToolChoice, ToolName};

/// Maximum number of `stop` sequences, as in OpenAI's API.
const MAX_STOPS: usize = 4;

/// A request to Chat Completions.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// The equivalent request of the Responses API.
    pub request: ResponseRequest,
    /// Whether a stream ends with a chunk that contains the usage.
    pub include_usage: bool,
}

impl ChatRequest {
    /// Parses a body. With `interpreter`, the request gets the tool `code_interpreter` even if it
    /// does not name it.
    pub fn parse(body: &[u8], ids: &mut Ids, interpreter: bool) -> Result<Self, ApiError> {
        let body = super::json(body)?;
        let fields = super::top(&body)?;
        unsupported(&fields)?;
        let mut tools = tools::tools(&fields, tool)?;
        if interpreter && !tools.iter().any(Tool::is_interpreter) {
            tools.push(code_interpreter());
            tools::unlike_fixed_tools(&tools)?;
        }
        let (instructions, input) = messages::messages(&fields, ids)?;
        let max_completion_tokens = fields.count("max_completion_tokens", 1)?;
        let options = fields.fields("stream_options")?;
        let include_usage = options.map_or(Ok(None), |options| options.flag("include_usage"))?;
        let request = ResponseRequest {
            model: fields.required("model")?,
            input,
            instructions,
            tool_choice: tools::choice(&fields, &tools, chosen)?,
            tools,
            parallel_tool_calls: fields.flag("parallel_tool_calls")?.unwrap_or(true),
            max_tool_calls: None,
            max_output_tokens: max_completion_tokens.or(fields.count("max_tokens", 1)?),
            previous_response_id: None,
            conversation: None,
            store: false,
            stream: fields.flag("stream")?.unwrap_or(false),
            background: false,
            include: Vec::new(),
            metadata: fields.notes("metadata")?,
            text: text(&fields)?,
            reasoning: ReasoningOptions {
                effort: fields.text("reasoning_effort")?,
                ..ReasoningOptions::default()
            },
            truncation: Truncation::Disabled,
            compaction: CompactionRequest::default(),
            sampling: SamplingSettings {
                stop: stop(&fields)?,
                seed: fields.read("seed", INTEGER, Value::as_i64)?,
                ..SamplingSettings::read(&fields)?
            },
            top_logprobs: None,
            service_tier: fields.text("service_tier")?,
            safety_identifier: fields.text("safety_identifier")?,
            prompt_cache_key: fields.text("prompt_cache_key")?,
            prompt_cache: PromptCache::default(),
            user: fields.text("user")?,
        };
        Ok(Self {
            request,
            include_usage: include_usage.unwrap_or(false),
        })
    }

    /// Returns whether the answer must be JSON, to which nothing can be added.
    pub fn wants_json(&self) -> bool {
        self.request.text.format != TextFormat::Text
    }
}

/// Rejects fields that would change the answer if they were ignored, with the alternative.
fn unsupported(fields: &Fields<'_>) -> Result<(), ApiError> {
    let refuse = |key: &str, instead: &str| {
        let reason = format!("is not supported: {instead}");
        Err(fields.invalid(key, "unsupported_parameter", &reason))
    };
    if fields.count("n", 1)?.is_some_and(|choices| choices > 1) {
        return refuse(
            "n",
            "one choice is written for each request; send the request again for another",
        );
    }
    if fields.flag("store")? == Some(true) {
        return refuse(
            "store",
            "chat completions are not stored; leave it out, or use `/v1/responses`, which stores responses",
        );
    }
    if fields.flag("logprobs")? == Some(true) {
        return refuse("logprobs", "probabilities are not supported; leave it out");
    }
    if fields.object("logit_bias")?.is_some_and(|bias| !bias.is_empty()) {
        return refuse("logit_bias", "leave it out");
    }
    if fields.texts("modalities")?.iter().any(|kind| kind != "text") {
        return refuse(
            "modalities",
            "answers are text; leave it out, or send `[\"text\"]`",
        );
    }
    for (key, instead) in [
        ("audio", "answers are text; leave it out"),
        ("functions", "send the functions in `tools`"),
        ("function_call", "send the choice in `tool_choice`"),
        ("web_search_options", "there is no web search here; leave it out"),
        (
            "previous_response_id",
            "send the whole conversation in `messages`, or use `/v1/responses`",
        ),
    ] {
        if fields.get(key).is_some() {
            return refuse(key, instead);
        }
    }
    Ok(())
}

/// Returns an interpreter in a new container.
fn code_interpreter() -> Tool {
    Tool::CodeInterpreter {
        container: Container::Auto(AutoContainer::default()),
    }
}

fn tool(fields: &Fields<'_>) -> Result<Tool, ApiError> {
    match fields.required("type")?.as_str() {
        "function" => {
            let function = fields.required_fields("function")?;
            let offered = tools::function(&function)?;
            if offered.is_programmatic() {
                let path = function.path("allowed_callers");
                let message = format!(
                    "`{path}`: code can call functions of the client only in `/v1/responses`; remove \
                     `allowed_callers`"
                );
                return Err(ApiError::invalid(path, "unsupported_parameter", message));
            }
            Ok(Tool::Function(offered))
        }
        "code_interpreter" if fields.get("container").is_none() => Ok(code_interpreter()),
        "code_interpreter" => Ok(Tool::CodeInterpreter {
            container: tools::container(fields)?,
        }),
        other => {
            let known = "`function` or `code_interpreter`; other tools are served by `/v1/responses`";
            Err(fields.unknown("type", other, known))
        }
    }
}

fn chosen(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolChoice, ApiError> {
    if fields.required("type")? != "allowed_tools" {
        return Ok(ToolChoice::Tool(offered(fields, tools)?));
    }
    tools::allowed(&fields.required_fields("allowed_tools")?, |name| {
        offered(name, tools)
    })
}

fn offered(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolName, ApiError> {
    match fields.required("type")?.as_str() {
        "function" => {
            let function = fields.required_fields("function")?;
            let name = ToolName::Function {
                name: function.required("name")?,
                namespace: None,
            };
            tools::among(name, tools, &function, "name")
        }
        "code_interpreter" => tools::among(ToolName::CodeInterpreter, tools, fields, "type"),
        other => Err(fields.unknown("type", other, "`function`, `code_interpreter` or `allowed_tools`")),
    }
}

fn text(fields: &Fields<'_>) -> Result<Text, ApiError> {
    let format = match fields.fields("response_format")? {
        Some(format) => super::format(&format, Some("json_schema"))?,
        None => TextFormat::Text,
    };
    let verbosity = fields.text("verbosity")?;
    Ok(Text { format, verbosity })
}

fn stop(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let stops = match fields.get("stop") {
        Some(Value::String(one)) => vec![one.clone()],
        _ => fields.texts("stop")?,
    };
    if stops.len() > MAX_STOPS {
        let reason = format!("has {} sequences; at most {MAX_STOPS} are allowed", stops.len());
        return Err(fields.invalid("stop", "array_above_max_length", &reason));
    }
    Ok(stops)
}
