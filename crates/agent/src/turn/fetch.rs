//! Asking servers for their tools, and calling these.

use cellblock_interpreter::derivation::tools::RENDER_CHART;
use serde_json::{Map, Value};

use super::Telling;
use super::step::Stop;
use crate::metrics::ToolCall;
use crate::tools::{Bound, Catalog};
use crate::wire::{McpError, McpSlot, Output};
use crate::{ToolReply, ToolServerError};

/// Bytes of a result that a client is told in its call's item. Of more it is told what the model reads, and where the whole is.
const MOST_TOLD: usize = 64 << 10;
/// What stands between an outline and where the whole is.
const ELSEWHERE: &str = "\n(the whole result has ";
/// Characters of a failed tool's own words that a model reads.
const MOST_WORDS: usize = 4000;
/// JSON-RPC's code for arguments that are wrong.
const INVALID_PARAMS: i64 = -32602;

/// A tool that is to be called.
pub(super) struct Fetch {
    bound: Box<Bound>,
    arguments: Map<String, Value>,
}

/// What came of it.
pub(super) struct Fetched {
    tool: String,
    reply: Result<ToolReply, ToolServerError>,
}

impl Fetch {
    /// Reads arguments; what is wrong with them is told for the model.
    pub(super) fn read(bound: Box<Bound>, arguments: &str) -> Result<Self, McpError> {
        let wrong = |message: String| McpError::Protocol {
            code: INVALID_PARAMS,
            message,
        };
        // Models leave out the arguments of a tool that has none.
        let arguments = if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        };
        match serde_json::from_str(arguments) {
            Ok(Value::Object(arguments)) => Ok(Self { bound, arguments }),
            Ok(_) => Err(wrong(
                "the tool was not called: its arguments have to be a JSON object".to_owned(),
            )),
            Err(error) => Err(wrong(format!(
                "the tool was not called: its arguments are not JSON: {error}"
            ))),
        }
    }

    /// Calls it. Its server bounds how long that takes.
    pub(super) async fn run(self) -> Fetched {
        let Self { bound, arguments } = self;
        let counted = ToolCall::begin(bound.configured());
        let reply = bound.server.call(&bound.tool.name, arguments).await;
        counted.ended(&reply);
        Fetched {
            reply,
            tool: bound.tool.name,
        }
    }
}

impl Telling<'_> {
    /// Asks the servers of the turn for their tools. The client is told of those that its request names, and of all that fail.
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
        taken.extend([crate::provider::INTERPRETER, RENDER_CHART]);
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

    /// Ends a call of a server's tool, and gives what the model reads of it. A result is kept whole; `item` will show it.
    pub(super) async fn end_fetch(&mut self, slot: McpSlot, fetched: Fetched, item: &str) -> Output {
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
            return self.failed(slot, McpError::protocol("there is nowhere to keep the result"));
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
                Output::Text(text)
            }
            Err(error) => {
                tracing::warn!(
                    tool = fetched.tool,
                    error = &error as &dyn std::error::Error,
                    "a result is not kept"
                );
                // Why may be a place of this host; what is wrong with the result itself is the model's to know.
                let why = if error.is_repairable() {
                    format!("the result could not be kept: {error}")
                } else {
                    "the result could not be kept; go on without it".to_owned()
                };
                self.failed(slot, McpError::protocol(why))
            }
        }
    }

    /// Ends a call that gave nothing.
    pub(super) fn failed(&mut self, slot: McpSlot, error: McpError) -> Output {
        let text = match &error {
            McpError::Execution { .. } => format!("The tool says that it failed: {}", error.words()),
            McpError::Protocol { .. } => format!("The tool gave nothing: {}", error.words()),
        };
        self.draft.end_mcp_call(slot, Err(error));
        Output::Text(text)
    }
}

/// The sha256 of the whole result, where an item tells only its outline.
pub fn whole_elsewhere(output: &str) -> Option<&str> {
    let (_, place) = output.rsplit_once(ELSEWHERE)?;
    let (_, url) = place.strip_suffix(')')?.split_once(" bytes: ")?;
    let name = url.rsplit('/').next()?;
    Some(name.split('.').next().unwrap_or(name))
}
