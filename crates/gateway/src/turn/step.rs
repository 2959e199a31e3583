//! One step of a turn: a model's answer, told while it comes.

use futures_util::StreamExt as _;
use serde_json::{Map, Value};

use super::Telling;
use crate::arguments::{ArgumentsDecoder, ArgumentsError};
use crate::provider::{Finish, INTERPRETER, ModelEvent, ModelStream, ProviderError};
use crate::wire::{
    CallSlot, FunctionCall, Ids, InterpreterSlot, Item, ItemStatus, Message, MessageSlot, Part, Reasoning,
    ReasoningSlot, Role, Usage,
};

/// What came of a step.
#[derive(Debug)]
pub(super) struct Step {
    /// What the model said.
    said: String,
    /// What it thought, and that in the form that only its provider reads.
    thoughts: Vec<(String, Option<String>)>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Usage,
    pub(super) finish: Finish,
}

/// A call, as the model made it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    arguments: String,
    pub(super) wants: Wants,
}

/// What a call wants.
#[derive(Debug)]
pub(super) enum Wants {
    /// To run code.
    Code {
        slot: InterpreterSlot,
        decoder: ArgumentsDecoder,
    },
    /// The client; it is told the call as it is.
    Client(Option<CallSlot>),
    /// A tool that is not there.
    Nothing,
}

impl Call {
    pub(super) fn item(&self, id: String) -> Item {
        Item::FunctionCall(FunctionCall {
            id,
            status: ItemStatus::Completed,
            call_id: self.id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
        })
    }
}

/// Why a step has no end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The client is gone.
    Gone,
    /// The provider failed.
    Failed(ProviderError),
}

impl From<ProviderError> for Stop {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

impl Step {
    /// What the model said, for its own next step.
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

    /// What the model thought, for its own next step.
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

    /// Follows an answer to its end. Text and reasoning that are open when something else begins are ended.
    pub(super) async fn follow(mut stream: ModelStream, telling: &mut Telling<'_>) -> Result<Self, Stop> {
        let mut step = Self {
            said: String::new(),
            thoughts: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            finish: Finish::Stop,
        };
        let mut open = Open::default();
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                () = telling.events.closed() => return Err(Stop::Gone),
            };
            let Some(event) = event else { break };
            step.take(event?, &mut open, telling);
            telling.flush().await?;
        }
        open.end(telling);
        telling.flush().await?;
        Ok(step)
    }

    fn take(&mut self, event: ModelEvent, open: &mut Open, telling: &mut Telling<'_>) {
        match event {
            ModelEvent::Text(delta) => {
                self.said.push_str(&delta);
                let slot = open.message(telling);
                telling.draft.text(slot, delta);
            }
            ModelEvent::Refusal(delta) => {
                self.said.push_str(&delta);
                let slot = open.message(telling);
                telling.draft.refuse(slot, delta);
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
                open.end(telling);
                let wants = telling.begin(&id, &name);
                let arguments = String::new();
                self.calls.push(Call {
                    id,
                    name,
                    arguments,
                    wants,
                });
            }
            ModelEvent::Arguments { call, delta } => {
                // Each call has had its beginning, as providers promise.
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments.push_str(&delta);
                    telling.grow(&mut call.wants, delta);
                }
            }
            ModelEvent::CallEnd { call } => {
                if let Some(Wants::Client(slot)) = self.calls.get_mut(call).map(|call| &mut call.wants)
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

/// What is being said or thought.
#[derive(Debug, Default)]
struct Open {
    message: Option<MessageSlot>,
    reasoning: Option<ReasoningSlot>,
}

impl Open {
    fn message(&mut self, telling: &mut Telling<'_>) -> &MessageSlot {
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
        self.message.get_or_insert_with(|| {
            let id = telling.ids.mint("msg");
            telling.draft.message(id)
        })
    }

    fn reasoning(&mut self, telling: &mut Telling<'_>) -> &ReasoningSlot {
        if let Some(slot) = self.message.take() {
            telling.draft.end_message(slot);
        }
        self.reasoning.get_or_insert_with(|| {
            let id = telling.ids.mint("rs");
            telling.draft.reasoning(id)
        })
    }

    fn end(&mut self, telling: &mut Telling<'_>) {
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
        if let Some(slot) = self.message.take() {
            telling.draft.end_message(slot);
        }
    }
}

impl Telling<'_> {
    fn begin(&mut self, id: &str, name: &str) -> Wants {
        if name == INTERPRETER
            && let Some(container) = self.container
        {
            let slot = self.draft.interpreter(self.ids.mint("ci"), container.to_owned());
            let decoder = ArgumentsDecoder::new("code");
            Wants::Code { slot, decoder }
        } else if self.functions.iter().any(|function| function == name) {
            let slot = self
                .draft
                .function_call(self.ids.mint("fc"), id.to_owned(), name.to_owned());
            Wants::Client(Some(slot))
        } else {
            Wants::Nothing
        }
    }

    fn grow(&mut self, wants: &mut Wants, delta: String) {
        match wants {
            // What is wrong with the arguments is told when they are all there.
            Wants::Code { slot, decoder } => match decoder.push(&delta) {
                Ok(grown) if !grown.is_empty() => self.draft.code(slot, grown),
                Ok(_) | Err(_) => {}
            },
            Wants::Client(Some(slot)) => self.draft.arguments(slot, delta),
            Wants::Client(None) | Wants::Nothing => {}
        }
    }
}

impl Open {
    /// Ends reasoning with what only its provider reads of it.
    fn seal(&mut self, telling: &mut Telling<'_>, content: String) {
        let slot = self.reasoning(telling);
        telling.draft.seal(slot, content);
        if let Some(slot) = self.reasoning.take() {
            telling.draft.end_reasoning(slot);
        }
    }
}

/// The code and the packages in whole arguments; or what is wrong with them, for the model.
pub(super) fn code(arguments: Result<Map<String, Value>, ArgumentsError>) -> Result<super::Code, String> {
    let mut arguments = arguments.map_err(|error| format!("The code was not run: {error}."))?;
    let wrong = || "The code was not run: `requirements` has to be a list of strings.".to_owned();
    let requirements = match arguments.remove("requirements") {
        None | Some(Value::Null) => Vec::new(),
        Some(value) => serde_json::from_value(value).map_err(|_| wrong())?,
    };
    match arguments.remove("code") {
        Some(Value::String(code)) => Ok(super::Code { code, requirements }),
        _ => Err("The code was not run: `code` has to be a string.".to_owned()),
    }
}
