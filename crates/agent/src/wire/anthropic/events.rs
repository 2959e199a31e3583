//! The events of a response as those of a message.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::blocks::{BlockPosition, Blocks};
use super::{BASH, CODE, EDITOR, failed, result, use_id};
use crate::wire::content::Part;
use crate::wire::error::{ApiError, ErrorKind};
use crate::wire::event::EventKind;
use crate::wire::item::{Item, ToolCaller};
use crate::wire::request::{COMMANDS, MessagesRequest};
use crate::wire::response::{Response, ResponseStatus, TokenUsage};

/// Describes a container by its ID.
pub type ContainerLookup = Box<dyn Fn(&str) -> ContainerReport + Send>;

/// Properties of a container in an answer.
#[derive(Clone, Debug, Default)]
pub struct ContainerReport {
    /// Time at which it expires if it is not used, in the form of RFC 3339.
    pub expires_at: String,
    /// Its skills, with their versions.
    pub skills: Vec<Value>,
}

/// The part of an item's only block.
const ONLY: usize = usize::MAX;

/// Converts the events of a response to those of a message.
pub struct MessageEvents {
    id: String,
    model: String,
    /// Whether the client sees the model's thinking.
    thinking: bool,
    /// The caller of the client's tools in code.
    caller: &'static str,
    /// Code that earlier messages have begun, whose blocks the client has.
    known: HashSet<String>,
    lookup: ContainerLookup,
    blocks: Blocks,
    /// The container of the code.
    container: Option<String>,
    /// Whether the client has to call its tools.
    calls: bool,
    error: Option<ApiError>,
}

impl std::fmt::Debug for MessageEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MessageEvents").finish_non_exhaustive()
    }
}

impl MessageEvents {
    /// Creates a converter for the answer to a request.
    pub fn new(id: String, request: &MessagesRequest, lookup: ContainerLookup) -> Self {
        Self {
            id,
            model: request.request.model.clone(),
            thinking: request.thinking,
            caller: request.caller,
            known: request.waiting.iter().cloned().collect(),
            lookup,
            blocks: Blocks::default(),
            container: None,
            calls: false,
            error: None,
        }
    }

    /// Returns the events for an event of the response.
    pub fn take(&mut self, event: EventKind) -> Vec<Value> {
        match event {
            EventKind::Created { .. } => return vec![self.start()],
            EventKind::ItemAdded { output_index, item } => self.begin(output_index, *item),
            EventKind::ItemDone { output_index, item } => self.end(output_index, &item),
            EventKind::PartAdded {
                output_index,
                content_index,
                part,
                ..
            } => self.begin_part((output_index, content_index), &part),
            EventKind::PartDone {
                output_index,
                content_index,
                part,
                ..
            } if !matches!(part, Part::ReasoningText { .. }) => {
                self.blocks.end((output_index, content_index));
            }
            EventKind::TextDelta {
                output_index,
                content_index,
                delta,
                ..
            }
            | EventKind::RefusalDelta {
                output_index,
                content_index,
                delta,
                ..
            } => {
                let delta = json!({"type": "text_delta", "text": delta});
                self.blocks.add((output_index, content_index), delta);
            }
            EventKind::ReasoningDelta {
                output_index, delta, ..
            } => {
                let delta = json!({"type": "thinking_delta", "thinking": delta});
                self.blocks.add((output_index, ONLY), delta);
            }
            EventKind::ArgumentsDelta {
                output_index, delta, ..
            }
            | EventKind::McpArgumentsDelta {
                output_index, delta, ..
            } => self.input((output_index, ONLY), &delta),
            EventKind::CodeDelta {
                output_index, delta, ..
            } => self.code((output_index, ONLY), &delta),
            EventKind::ArgumentsDone { output_index, .. }
            | EventKind::McpArgumentsDone { output_index, .. } => {
                self.blocks.end((output_index, ONLY));
            }
            EventKind::CodeDone { output_index, .. } => {
                self.input((output_index, ONLY), "\"}");
                self.blocks.end((output_index, ONLY));
            }
            EventKind::Error(error) => self.error = Some(error.0),
            EventKind::Completed { response } | EventKind::Incomplete { response } => {
                return self.finish(&response);
            }
            EventKind::Failed { response } => return vec![failed(&self.failure(&response))],
            _ => {}
        }
        self.blocks.events()
    }

    /// Returns the error with which the response failed.
    pub fn take_error(&mut self) -> Option<ApiError> {
        self.error.take()
    }

    fn start(&self) -> Value {
        json!({"type": "message_start", "message": {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(TokenUsage::default()),
            "container": null,
        }})
    }

    fn begin(&mut self, output_index: usize, item: Item) {
        let place = (output_index, ONLY);
        match item {
            Item::FunctionCall(call) => {
                self.calls = true;
                let caller = match call.caller {
                    None => json!({"type": "direct"}),
                    Some(ToolCaller::Program { caller_id }) => {
                        json!({"type": self.caller, "tool_id": use_id(&caller_id)})
                    }
                };
                let block = json!({"type": "tool_use", "id": call.call_id, "name": call.name,
                    "input": {}, "caller": caller});
                self.blocks.start(place, block);
            }
            Item::CodeInterpreterCall(call) => {
                self.container = Some(call.container_id);
                if !self.known.contains(&call.id) {
                    self.blocks.start(place, used(&call.id, CODE));
                    self.input(place, "{\"code\": \"");
                }
            }
            Item::McpCall(call) if call.server_label == COMMANDS => {
                let name = if call.name == BASH { BASH } else { EDITOR };
                self.blocks.start(place, used(&call.id, name));
            }
            _ => {}
        }
    }

    fn begin_part(&mut self, place: BlockPosition, part: &Part) {
        match part {
            Part::ReasoningText { .. } => self.think(place.0),
            _ => self
                .blocks
                .start(place, json!({"type": "text", "text": "", "citations": null})),
        }
    }

    /// Starts the block of reasoning, unless it has one.
    fn think(&mut self, output_index: usize) {
        let place = (output_index, ONLY);
        if self.thinking && !self.blocks.is_open(place) {
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            self.blocks.start(place, block);
        }
    }

    fn end(&mut self, output_index: usize, item: &Item) {
        let place = (output_index, ONLY);
        match item {
            Item::Reasoning(reasoning) => {
                if let Some(sealed) = &reasoning.encrypted_content {
                    self.think(output_index);
                    let delta = json!({"type": "signature_delta", "signature": sealed});
                    self.blocks.add(place, delta);
                }
                self.blocks.end(place);
            }
            // Code that waits for the client has its result in a later message.
            Item::CodeInterpreterCall(call) if !call.status.is_running() => {
                self.blocks.whole((output_index, 0), result::of_code(call));
            }
            Item::McpCall(call) if call.server_label == COMMANDS => {
                let container = call.report.as_ref().map(|report| report.container.clone());
                let container = container.filter(|container| !container.is_empty());
                self.container = self.container.take().or(container);
                self.blocks.whole((output_index, 0), result::of_command(call));
            }
            _ => {}
        }
    }

    fn input(&mut self, place: BlockPosition, json: &str) {
        if !json.is_empty() {
            let delta = json!({"type": "input_json_delta", "partial_json": json});
            self.blocks.add(place, delta);
        }
    }

    /// Adds code, as the inside of a JSON string.
    fn code(&mut self, place: BlockPosition, delta: &str) {
        let quoted = Value::from(delta).to_string();
        self.input(place, &quoted[1..quoted.len() - 1]);
    }

    fn finish(&mut self, response: &Response) -> Vec<Value> {
        self.blocks.end_all();
        let mut events = self.blocks.events();
        let container = self.container.as_ref().map(|id| {
            let ContainerReport { expires_at, skills } = (self.lookup)(id);
            let skills = (!skills.is_empty()).then_some(skills);
            json!({"id": id, "expires_at": expires_at, "skills": skills})
        });
        let usage = usage(response.usage.unwrap_or_default());
        let delta =
            json!({"stop_reason": self.reason(response), "stop_sequence": null, "container": container});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn reason(&self, response: &Response) -> &'static str {
        let cut = response.incomplete_details.as_ref();
        match (response.status, cut.map(|cut| cut.reason.as_str())) {
            (ResponseStatus::Completed, _) if self.calls => "tool_use",
            (ResponseStatus::Completed, _) => "end_turn",
            (_, Some("content_filter")) => "refusal",
            (_, Some("max_steps" | "max_attempts")) => "pause_turn",
            _ => "max_tokens",
        }
    }

    fn failure(&mut self, response: &Response) -> ApiError {
        if let Some(error) = &self.error {
            return error.clone();
        }
        let message = response.error.as_ref().map(|failure| failure.message.clone());
        let error = ApiError {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: message.unwrap_or_else(|| "the message failed".to_owned()),
            param: None,
        };
        self.error = Some(error.clone());
        error
    }
}

fn used(item: &str, name: &str) -> Value {
    json!({"type": "server_tool_use", "id": use_id(item), "name": name, "input": {},
        "caller": {"type": "direct"}})
}

/// Returns the usage; this API counts cached tokens separately.
fn usage(usage: TokenUsage) -> Value {
    let cached = usage.input_tokens_details;
    let fresh = usage
        .input_tokens
        .saturating_sub(cached.cached_tokens)
        .saturating_sub(cached.cache_write_tokens);
    json!({
        "input_tokens": fresh,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": cached.cached_tokens,
        "cache_creation_input_tokens": cached.cache_write_tokens,
    })
}
