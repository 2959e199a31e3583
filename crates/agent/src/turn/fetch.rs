//! Listing the tools of servers, and calling them.

use std::sync::Arc;

use cellblock_interpreter::derivation::tools::RENDER_CHART;
use serde_json::{Map, Value};

use super::builder::{ResponseBuilder, Stop};
use crate::metrics::ToolCall;
use crate::tools::{Catalog, ServerTool};
use crate::wire::{FunctionOutput, McpError, McpSlot, Tool};
use crate::{ToolReply, ToolServer, ToolServerError};

/// Maximum size in bytes of a result in the client's item. For larger ones, the item has the
/// model's text and the URL of the whole result.
const MOST_TOLD: usize = 64 << 10;
/// Text between an outline and the URL of the whole result.
const ELSEWHERE: &str = "\n(the whole result has ";
/// Maximum number of characters of a failed tool's own words in the model's result.
const MOST_WORDS: usize = 4000;
/// JSON-RPC's code for invalid arguments.
const INVALID_PARAMS: i64 = -32602;

/// A requested call.
pub(super) struct Fetch {
    pub(super) server: Arc<dyn ToolServer>,
    pub(super) bound: Box<ServerTool>,
    pub(super) arguments: Map<String, Value>,
}

/// Result of a call.
pub(super) struct FetchResult {
    tool: String,
    reply: Result<ToolReply, ToolServerError>,
}

/// Reads arguments; errors are in words for the model.
pub(super) fn read(arguments: &str) -> Result<Map<String, Value>, McpError> {
    let wrong = |message: String| McpError::Protocol {
        code: INVALID_PARAMS,
        message,
    };
    // Models omit the arguments of a tool that has none.
    let arguments = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(wrong(
            "the tool was not called: its arguments must be a JSON object".to_owned(),
        )),
        Err(error) => Err(wrong(format!(
            "the tool was not called: its arguments are not JSON: {error}"
        ))),
    }
}

impl Fetch {
    /// Calls the tool. Its server applies its own timeout.
    pub(super) async fn run(self) -> FetchResult {
        let Self {
            server,
            bound,
            arguments,
        } = self;
        let counted = ToolCall::begin(bound.configured());
        let reply = server.call(&bound.tool.name, arguments).await;
        counted.ended(&reply);
        FetchResult {
            reply,
            tool: bound.tool.name,
        }
    }
}

impl ResponseBuilder<'_> {
    /// Lists the tools of the turn's servers. The client receives the lists of those that its
    /// request names, and all failures.
    pub(super) async fn ask_servers(&mut self) -> Result<(), Stop> {
        let Some(research) = self.research.filter(|research| !research.sources.is_empty()) else {
            return Ok(());
        };
        let mut slots = Vec::new();
        for source in &research.sources {
            slots.push(source.named.then(|| {
                let id = self.ids.mint("mcpl");
                self.draft.mcp_list(id, source.label.clone())
            }));
        }
        self.flush().await?;
        let mut taken: Vec<_> = self.functions.names().collect();
        let fixed = self.draft.response().tools.iter().filter_map(Tool::fixed_name);
        let fixed: Vec<String> = fixed.map(str::to_owned).collect();
        taken.extend([crate::provider::INTERPRETER, RENDER_CHART]);
        taken.extend(fixed.iter().map(String::as_str));
        let (catalog, answers) = tokio::select! {
            asked = Catalog::ask(&research.sources, &taken) => asked,
            () = self.events.closed() => return Err(Stop::Gone),
        };
        self.catalog = catalog;
        for (slot, answer) in slots.into_iter().zip(answers) {
            let slot = match slot {
                None if answer.offers.is_ok() => continue,
                None => self.draft.mcp_list(self.ids.mint("mcpl"), answer.label),
                Some(slot) => slot,
            };
            self.draft.end_mcp_list(slot, answer.offers);
        }
        self.flush().await
    }

    /// Ends a call of a server's tool, and returns the result for the model. The whole result is
    /// kept; `item` will show it.
    pub(super) async fn end_fetch(
        &mut self,
        slot: McpSlot,
        fetched: FetchResult,
        item: &str,
    ) -> FunctionOutput {
        let value = match fetched.reply {
            Ok(ToolReply::Result(value)) => value,
            Ok(ToolReply::Failed(words)) => {
                let words: String = words.chars().take(MOST_WORDS).collect();
                return self.failed(slot, McpError::execution(words));
            }
            Err(error) => {
                return self.failed(slot, McpError::protocol(error.to_string()));
            }
        };
        let Some(research) = self.research else {
            return self.failed(slot, McpError::protocol("this server cannot store results"));
        };
        match research.evidence.record(&fetched.tool, &value, item).await {
            Ok((entry, text)) => {
                self.progress.fetched();
                let whole = match value {
                    Value::String(text) => text,
                    value => value.to_string(),
                };
                let told = if whole.len() <= MOST_TOLD {
                    whole
                } else {
                    let url = research.urls.of(entry.sha256, entry.media_type());
                    format!("{text}{ELSEWHERE}{} bytes: {url})", entry.bytes)
                };
                self.draft.end_mcp_call(slot, Ok(told));
                FunctionOutput::Text(text)
            }
            Err(error) => {
                tracing::warn!(
                    tool = fetched.tool,
                    error = &error as &dyn std::error::Error,
                    "a result was not stored"
                );
                // The cause may contain a path of this host; a problem with the result itself is
                // reported to the model.
                let why = if error.is_repairable() {
                    format!("the result could not be stored: {error}")
                } else {
                    "the result could not be stored; continue without it".to_owned()
                };
                self.failed(slot, McpError::protocol(why))
            }
        }
    }

    /// Ends a call without a result.
    pub(super) fn failed(&mut self, slot: McpSlot, error: McpError) -> FunctionOutput {
        let text = match &error {
            McpError::Execution { .. } => format!("The tool reported a failure: {}", error.words()),
            McpError::Protocol { .. } => format!("The tool returned no result: {}", error.words()),
        };
        self.draft.end_mcp_call(slot, Err(error));
        FunctionOutput::Text(text)
    }
}

/// Returns the sha256 of the whole result, if an item contains only its outline.
pub fn whole_elsewhere(output: &str) -> Option<&str> {
    let (_, place) = output.rsplit_once(ELSEWHERE)?;
    let (_, url) = place.strip_suffix(')')?.split_once(" bytes: ")?;
    let name = url.rsplit('/').next()?;
    Some(name.split('.').next().unwrap_or(name))
}
