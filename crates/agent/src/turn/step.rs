//! One step of a turn: a model's response, forwarded as it arrives.

use std::sync::Arc;

use cellblock_interpreter::derivation::tools::RENDER_CHART;
use cellblock_interpreter::toolset::WriteTerms;
use cellblock_interpreter::toolset::program::PROGRAM;
use cellblock_interpreter::toolset::shell::SHELL;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};

use super::builder::{ResponseBuilder, Stop};
use super::cite::cite;
use super::deferral::not_loaded;
use super::form::{CallForm, form_of};
use super::runner::CallSandbox;
use super::toolset::ToolsetCall;
use crate::arguments::{ArgumentsDecoder, ArgumentsError};
use crate::provider::{Finish, INTERPRETER, ModelEvent, ModelStream};
use crate::tools::{OWN, ServerTool};
use crate::wire::{
    CallKind, CallSlot, FunctionCall, Ids, InterpreterSlot, Item, ItemStatus, McpApprovalRequest, McpSlot,
    Message, MessageSlot, Part, Program, REQUEST_PREFIX, Reasoning, ReasoningSlot, Role, SearchCall,
    SearchOutput, TokenUsage, Tool, served,
};

/// Result of a step.
pub(super) struct ModelStep {
    /// Text of the model.
    pub(super) said: String,
    /// Reasoning of the model, with its sealed form.
    thoughts: Vec<(String, Option<String>)>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: TokenUsage,
    pub(super) finish: Finish,
}

/// A call by the model.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Namespace of the client's function.
    pub(super) namespace: Option<String>,
    pub(super) arguments: String,
    pub(super) wants: CallPurpose,
}

/// Purpose of a call.
pub(super) enum CallPurpose {
    /// Runs code.
    Code {
        /// Id of its item.
        id: String,
        slot: InterpreterSlot,
        place: Arc<dyn CallSandbox>,
        decoder: Box<ArgumentsDecoder>,
        /// Terms of its calls that need approval.
        writes: WriteTerms,
    },
    /// Runs commands of a shell in a container.
    Shell {
        /// Id of its item.
        id: String,
        place: Arc<dyn CallSandbox>,
    },
    /// Runs a program of which the client gets an item once the code is complete.
    Program { place: Arc<dyn CallSandbox> },
    /// Runs a program, which has its item.
    Started {
        program: Program,
        place: Arc<dyn CallSandbox>,
    },
    /// Calls a function of the client, which receives the call unchanged.
    Client(Option<CallSlot>),
    /// Calls another tool of the client, which receives the call in this form once it is complete.
    Form(CallForm),
    /// Calls a tool of the client, which has received the item with this id.
    HandedOver(String),
    /// Cannot be served, for this reason.
    Refused(String),
    /// Calls a tool once a person has approved the call; its item has this id.
    Approval { id: String, bound: Box<ServerTool> },
    /// Searches deferred tools, which was done at once.
    Searched(Box<(SearchCall, SearchOutput)>),
    /// Calls a tool of a server, or of a toolset that the request names.
    Tool {
        /// Id of its item.
        id: String,
        slot: McpSlot,
        /// `None` for charts, which need no place.
        bound: Option<Box<ServerTool>>,
    },
    /// Calls an unknown tool.
    Nothing,
}

impl Call {
    pub(super) fn item(&self, ids: &mut Ids) -> Item {
        if let Some(request) = self.approval() {
            return Item::McpApprovalRequest(request);
        }
        if let CallPurpose::Started { program, .. } = &self.wants {
            return Item::Program(program.clone());
        }
        if let CallPurpose::Searched(search) = &self.wants {
            return Item::ToolSearchCall(search.0.clone());
        }
        Item::FunctionCall(FunctionCall {
            id: match &self.wants {
                // Kept so that its call is found again by it.
                CallPurpose::Code { id, .. }
                | CallPurpose::Tool { id, .. }
                | CallPurpose::Shell { id, .. } => served(id),
                CallPurpose::HandedOver(id) => id.clone(),
                _ => ids.mint("fc"),
            },
            status: ItemStatus::Completed,
            call_id: self.id.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            arguments: self.arguments.clone(),
            caller: None,
        })
    }
}

impl Call {
    /// Returns a call that was approved, as an item whose id says that it was made.
    pub(super) fn made(&self) -> Item {
        Item::FunctionCall(FunctionCall {
            id: served(&self.id),
            status: ItemStatus::Completed,
            call_id: self.id.clone(),
            name: self.name.clone(),
            namespace: None,
            arguments: self.arguments.clone(),
            caller: None,
        })
    }

    /// Returns the request for its approval, if it needs that.
    pub(super) fn approval(&self) -> Option<McpApprovalRequest> {
        let CallPurpose::Approval { id, bound } = &self.wants else {
            return None;
        };
        Some(McpApprovalRequest {
            id: id.clone(),
            server_label: bound.label.clone(),
            name: bound.tool.name.clone(),
            arguments: self.arguments.clone(),
        })
    }

    /// Returns whether the client continues, rather than the model.
    pub(super) const fn is_for_client(&self) -> bool {
        matches!(
            self.wants,
            CallPurpose::Client(_) | CallPurpose::HandedOver(_) | CallPurpose::Approval { .. }
        )
    }
}

impl ModelStep {
    /// Returns the model's text, for its own next step.
    pub(super) fn message(&self, id: String) -> Option<Item> {
        (!self.said.is_empty()).then(|| {
            Item::Message(Message {
                id,
                status: ItemStatus::Completed,
                role: Role::Assistant,
                content: vec![Part::output_text(&self.said)],
                phase: None,
            })
        })
    }

    /// Returns the model's reasoning, for its own next step.
    pub(super) fn thoughts(&self, ids: &mut Ids) -> Vec<Item> {
        let thoughts = self.thoughts.iter().map(|(text, sealed)| {
            let text = text.clone();
            Item::Reasoning(Reasoning {
                id: ids.mint("rs"),
                status: ItemStatus::Completed,
                summary: Vec::new(),
                content: (!text.is_empty()).then(|| vec![Part::ReasoningText { text }]),
                encrypted_content: sealed.clone(),
            })
        });
        thoughts.collect()
    }

    fn think(&mut self, delta: &str) {
        match self.thoughts.last_mut() {
            Some((text, None)) => text.push_str(delta),
            _ => self.thoughts.push((delta.to_owned(), None)),
        }
    }

    fn seal(&mut self, content: String) {
        match self.thoughts.last_mut() {
            Some((_, sealed @ None)) => *sealed = Some(content),
            _ => self.thoughts.push((String::new(), Some(content))),
        }
    }

    /// Follows a response to its end. Open text and reasoning end when something else starts.
    pub(super) async fn follow(
        mut stream: ModelStream,
        telling: &mut ResponseBuilder<'_>,
    ) -> Result<Self, Stop> {
        let mut step = Self {
            said: String::new(),
            thoughts: Vec::new(),
            calls: Vec::new(),
            usage: TokenUsage::default(),
            finish: Finish::Stop,
        };
        let mut open = OpenItems::default();
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                () = telling.events.closed() => return Err(Stop::Gone),
            };
            let Some(event) = event else { break };
            step.take(event?, &mut open, telling).await;
            telling.flush().await?;
        }
        let last = step.calls.is_empty();
        open.end(telling, last);
        telling.flush().await?;
        Ok(step)
    }

    async fn take(&mut self, event: ModelEvent, open: &mut OpenItems, telling: &mut ResponseBuilder<'_>) {
        match event {
            ModelEvent::Text(delta) => {
                self.said.push_str(&delta);
                let message = open.message(telling);
                message.text.push_str(&delta);
                telling.draft.text(&message.slot, delta);
            }
            ModelEvent::Refusal(delta) => {
                self.said.push_str(&delta);
                let message = open.message(telling);
                message.text.clear();
                telling.draft.refuse(&message.slot, delta);
            }
            ModelEvent::Sealed(content) => {
                self.seal(content.clone());
                open.seal(telling, content);
            }
            ModelEvent::Reasoning(delta) => {
                self.think(&delta);
                let slot = open.reasoning(telling);
                telling.draft.think(slot, delta);
            }
            ModelEvent::CallBegin { id, name, .. } => {
                open.end(telling, false);
                let before = self.calls.iter().filter(|call| {
                    matches!(
                        call.wants,
                        CallPurpose::Code { .. } | CallPurpose::Shell { .. } | CallPurpose::Program { .. }
                    )
                });
                let before = before.count();
                let wants = telling.begin(&id, &name, before).await;
                let (namespace, name) = match &wants {
                    CallPurpose::Client(_) | CallPurpose::Form(_) => telling.as_client_knows(name),
                    _ => (None, name),
                };
                self.calls.push(Call {
                    id,
                    name,
                    namespace,
                    arguments: String::new(),
                    wants,
                });
            }
            ModelEvent::Arguments { call, delta } => {
                // Providers guarantee that each call has started.
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments.push_str(&delta);
                    telling.grow(&mut call.wants, delta);
                }
            }
            ModelEvent::CallEnd { call } => {
                if let Some(CallPurpose::Client(slot)) = self.calls.get_mut(call).map(|call| &mut call.wants)
                    && let Some(slot) = slot.take()
                {
                    telling.draft.end_function_call(slot);
                }
            }
            ModelEvent::Usage(usage) => self.usage += usage,
            ModelEvent::Finish(finish) => self.finish = finish,
        }
    }
}

/// The open message or reasoning.
#[derive(Debug, Default)]
struct OpenItems {
    message: Option<MessageDraft>,
    reasoning: Option<ReasoningSlot>,
}

/// A message under construction.
#[derive(Debug)]
struct MessageDraft {
    slot: MessageSlot,
    /// Text of its current part; empty in a refusal.
    text: String,
}

impl OpenItems {
    fn message(&mut self, telling: &mut ResponseBuilder<'_>) -> &mut MessageDraft {
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
        self.message.get_or_insert_with(|| {
            let id = telling.ids.mint("msg");
            MessageDraft {
                slot: telling.draft.message(id),
                text: String::new(),
            }
        })
    }

    fn reasoning(&mut self, telling: &mut ResponseBuilder<'_>) -> &ReasoningSlot {
        if let Some(said) = self.message.take() {
            telling.end_message(said, false);
        }
        self.reasoning.get_or_insert_with(|| {
            let id = telling.ids.mint("rs");
            telling.draft.reasoning(id)
        })
    }

    /// Ends reasoning with its sealed form.
    fn seal(&mut self, telling: &mut ResponseBuilder<'_>, content: String) {
        let slot = self.reasoning(telling);
        telling.draft.seal(slot, content);
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
    }

    /// Ends the open item. The `last` message of a turn cites all files that are not cited yet.
    fn end(&mut self, telling: &mut ResponseBuilder<'_>, last: bool) {
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
        if let Some(said) = self.message.take() {
            telling.end_message(said, last);
        }
    }
}

impl ResponseBuilder<'_> {
    fn end_message(&mut self, said: MessageDraft, last: bool) {
        if !said.text.is_empty() {
            for annotation in cite(&said.text, &mut self.made, last) {
                self.draft.annotate(&said.slot, annotation);
            }
        }
        self.draft.end_message(said.slot);
    }

    /// Starts a call; its step already has `before` calls of code.
    async fn begin(&mut self, id: &str, name: &str, before: usize) -> CallPurpose {
        if self.is_hidden(name) {
            return CallPurpose::Refused(not_loaded(name));
        }
        if name == INTERPRETER && self.code {
            let place = self.runner.place(before).await;
            let container = place.container().to_owned();
            let id = self.ids.mint("ci");
            let slot = self.draft.interpreter(id.clone(), container);
            let decoder = Box::new(ArgumentsDecoder::new("code"));
            CallPurpose::Code {
                id,
                slot,
                place,
                decoder,
                writes: self.writes.clone(),
            }
        } else if name == SHELL && self.shell {
            let place = self.runner.place(before).await;
            let id = self.ids.mint(CallKind::Shell.call_prefix());
            CallPurpose::Shell { id, place }
        } else if name == PROGRAM && self.draft.response().tools.iter().any(Tool::is_programs) {
            let place = self.runner.place(before).await;
            CallPurpose::Program { place }
        } else if let Some(form) = form_of(&self.draft.response().tools, &self.functions, name) {
            CallPurpose::Form(form)
        } else if self.functions.find(name).is_some() {
            let (namespace, name) = self.as_client_knows(name.to_owned());
            let slot = self
                .draft
                .function_call(self.ids.mint("fc"), id.to_owned(), namespace, name);
            CallPurpose::Client(Some(slot))
        } else if let Some(bound) = self.catalog.find(name) {
            let bound = Box::new(bound.clone());
            if bound.asks {
                let id = self.ids.mint(REQUEST_PREFIX);
                return CallPurpose::Approval { id, bound };
            }
            let id = self.ids.mint("mcp");
            let (label, tool) = (bound.label.clone(), bound.tool.name.clone());
            let slot = self.draft.mcp_call(id.clone(), label, tool, None);
            let bound = Some(bound);
            CallPurpose::Tool { id, slot, bound }
        } else if name == RENDER_CHART && self.draws() {
            let id = self.ids.mint("mcp");
            let label = OWN.to_owned();
            let slot = self.draft.mcp_call(id.clone(), label, name.to_owned(), None);
            let bound = None;
            CallPurpose::Tool { id, slot, bound }
        } else {
            CallPurpose::Nothing
        }
    }

    /// Returns the namespace and the name of the client's function with this model name.
    fn as_client_knows(&self, name: String) -> (Option<String>, String) {
        match self.functions.find(&name) {
            Some(named) => (named.namespace.clone(), named.name.clone()),
            None => (None, name),
        }
    }

    pub(super) fn grow(&mut self, wants: &mut CallPurpose, delta: String) {
        match wants {
            // Errors in the arguments are reported when they are complete.
            CallPurpose::Code { slot, decoder, .. } => match decoder.push(&delta) {
                Ok(grown) if !grown.is_empty() => self.draft.code(slot, grown),
                Ok(_) | Err(_) => {}
            },
            CallPurpose::Client(Some(slot)) => self.draft.arguments(slot, delta),
            CallPurpose::Tool { slot, .. } => self.draft.mcp_arguments(slot, delta),
            CallPurpose::Shell { .. }
            | CallPurpose::Program { .. }
            | CallPurpose::Started { .. }
            | CallPurpose::Client(None)
            | CallPurpose::Form(_)
            | CallPurpose::HandedOver(_)
            | CallPurpose::Approval { .. }
            | CallPurpose::Refused(_)
            | CallPurpose::Searched(_)
            | CallPurpose::Nothing => {}
        }
    }
}

/// Returns the work of complete arguments, if they can be read.
pub(super) fn arguments(
    arguments: Result<Map<String, Value>, ArgumentsError>,
) -> Result<Map<String, Value>, String> {
    arguments.map_err(|error| format!("The code was not run: {error}."))
}

/// Returns the code and the packages in complete arguments, or an error for the model.
pub(super) fn code(mut arguments: Map<String, Value>) -> Result<ToolsetCall, String> {
    let wrong = || "The code was not run: `requirements` must be an array of strings.".to_owned();
    let requirements = match arguments.remove("requirements") {
        None | Some(Value::Null) => Vec::<String>::new(),
        Some(value) => serde_json::from_value(value).map_err(|_| wrong())?,
    };
    match arguments.remove("code") {
        Some(Value::String(code)) if code.trim().is_empty() => {
            Err("The code was not run: `code` is empty. Send the Python code to run.".to_owned())
        }
        Some(Value::String(code)) => Ok(ToolsetCall::cell(code, &requirements)),
        _ => Err("The code was not run: `code` must be a string.".to_owned()),
    }
}
