//! A turn: a request, the model's steps that answer it, and the code that these run.
//!
//! ```text
//! Turn::run ── Provider::stream ──> text, reasoning, calls ──> Events, as they come
//!     ▲              │                 │
//!     │              └ no calls: the end └ code_interpreter: Runner::run    function of the client: the end
//!     └───────────── results ────────────────────┘
//! ```
//!
//! The end is always told: `completed`, `incomplete` with a reason, or `failed`. A client that is gone stops the model and the code.

mod runner;
mod session;
mod step;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::sync::mpsc;

use crate::provider::{Finish, INTERPRETER, ModelRequest, Provider, ProviderError};
use crate::wire::{
    AllowedMode, ApiError, ChoiceMode, Draft, ErrorKind, Event, Function, FunctionCallOutput, Ids, Item,
    ItemStatus, Output, Request, Response, Tool, ToolChoice, Usage,
};

pub use runner::{Code, Ran, Runner};
pub use session::SessionRunner;

use step::{Call, Step, Stop, Wants};

/// Answers requests with a model and a runner of its code.
#[derive(Clone)]
pub struct Turn {
    provider: Arc<dyn Provider>,
    runner: Arc<dyn Runner>,
    steps: u32,
    ids: Ids,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// What is told, and to whom.
#[derive(Debug)]
struct Telling<'a> {
    draft: Draft,
    events: mpsc::Sender<Event>,
    ids: Ids,
    /// Where code runs, if the request allows any.
    container: Option<&'a str>,
    functions: Vec<String>,
}

impl Telling<'_> {
    /// Sends what there is to tell. A client that reads slowly is waited for; nothing piles up.
    async fn flush(&mut self) -> Result<(), Stop> {
        for event in self.draft.take() {
            self.events.send(event).await.map_err(|_| Stop::Gone)?;
        }
        Ok(())
    }
}

impl Turn {
    /// A turn of at most 20 model calls.
    pub const fn new(provider: Arc<dyn Provider>, runner: Arc<dyn Runner>) -> Self {
        Self {
            provider,
            runner,
            steps: 20,
            ids: Ids::random(),
        }
    }

    /// Takes at most so many model calls.
    #[must_use]
    pub const fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Makes ids with these.
    #[must_use]
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// Answers a request. `response` is its response before anything came of it; `earlier` is the conversation that it goes on from. Events
    /// are sent as they happen, the last one before this returns.
    pub async fn run(
        &self,
        request: &Request,
        response: Response,
        earlier: Vec<Item>,
        events: mpsc::Sender<Event>,
    ) -> Response {
        let mut conversation = earlier;
        conversation.extend(request.input.iter().cloned());
        self.converse(request, response, &mut conversation, events).await
    }

    /// The same where `conversation` is everything that the model is asked, the request's input too. What the model said and read is added
    /// to it, so that another turn can go on from there.
    pub async fn converse(
        &self,
        request: &Request,
        response: Response,
        conversation: &mut Vec<Item>,
        events: mpsc::Sender<Event>,
    ) -> Response {
        let hosted = |tool: &Tool| matches!(tool, Tool::CodeInterpreter { .. });
        let mut telling = Telling {
            draft: Draft::begin(response),
            events: events.clone(),
            ids: self.ids.clone(),
            container: request.tools.iter().any(hosted).then(|| self.runner.container()),
            functions: request
                .tools
                .iter()
                .filter(|tool| !hosted(tool))
                .map(|tool| tool.name().to_owned())
                .collect(),
        };
        let mut usage = Usage::default();
        let ended = self
            .steps_of(request, conversation, &mut telling, &mut usage)
            .await;
        let draft = telling.draft;
        let (response, last) = match ended {
            Ok(None) => draft.complete(usage, now()),
            Ok(Some(reason)) => draft.incomplete(reason, usage),
            Err(Stop::Gone) => draft.incomplete("client_gone", usage),
            Err(Stop::Failed(error)) => {
                // What nobody counted is not nothing.
                let counted = (usage != Usage::default()).then_some(usage);
                draft.fail(told(&error), counted)
            }
        };
        for event in last {
            if events.send(event).await.is_err() {
                break;
            }
        }
        response
    }

    /// Takes steps until there is an answer, or a reason why it is not whole.
    async fn steps_of(
        &self,
        request: &Request,
        items: &mut Vec<Item>,
        telling: &mut Telling<'_>,
        usage: &mut Usage,
    ) -> Result<Option<&'static str>, Stop> {
        let mut left = request.max_tool_calls.unwrap_or(u64::MAX);
        telling.flush().await?;
        for taken in 0..self.steps {
            let asked = ask(request, items, taken > 0);
            let stream = tokio::select! {
                stream = self.provider.stream(asked) => stream?,
                () = telling.events.closed() => return Err(Stop::Gone),
            };
            let step = Step::follow(stream, telling).await?;
            *usage += step.usage;
            items.extend(step.thoughts(&mut telling.ids));
            items.extend(step.message(telling.ids.mint("msg")));
            match step.finish {
                // Calls that were cut off are not run.
                Finish::Length => return Ok(Some("max_output_tokens")),
                Finish::ContentFilter => return Ok(Some("content_filter")),
                Finish::Stop | Finish::Calls if step.calls.is_empty() => return Ok(None),
                Finish::Stop | Finish::Calls => {}
            }
            items.extend(step.calls.iter().map(|call| call.item(telling.ids.mint("fc"))));
            let for_client = step
                .calls
                .iter()
                .any(|call| matches!(call.wants, Wants::Client(_)));
            for call in step.calls {
                items.extend(self.serve(call, request, &mut left, telling).await?);
            }
            if for_client {
                return Ok(None);
            }
        }
        Ok(Some("max_steps"))
    }

    /// Runs a call if it is one of code, and gives its result for the model. Calls of one step share a container, and so run one by one.
    async fn serve(
        &self,
        call: Call,
        request: &Request,
        left: &mut u64,
        telling: &mut Telling<'_>,
    ) -> Result<Option<Item>, Stop> {
        let result = match call.wants {
            Wants::Client(_) => return Ok(None),
            Wants::Nothing => Output::Text(format!("There is no tool named `{}`.", call.name)),
            Wants::Code { slot, decoder } => {
                let ran = match step::code(decoder.finish()) {
                    Err(why) => Ran::refused(why),
                    Ok(_) if *left == 0 => {
                        Ran::refused("The code was not run: no calls are left; answer with what there is.")
                    }
                    Ok(code) => {
                        *left -= 1;
                        telling.draft.interpret(&slot);
                        telling.flush().await?;
                        tokio::select! {
                            ran = self.runner.run(code) => ran,
                            () = telling.events.closed() => {
                                self.runner.stop();
                                return Err(Stop::Gone);
                            }
                        }
                    }
                };
                let outputs = request.includes_outputs().then_some(ran.outputs);
                telling.draft.end_interpreter(slot, ran.status, outputs);
                telling.flush().await?;
                ran.result
            }
        };
        Ok(Some(Item::FunctionCallOutput(FunctionCallOutput {
            id: telling.ids.mint("fco"),
            status: ItemStatus::Completed,
            call_id: call.id,
            output: result,
        })))
    }
}

/// What a model is asked in one step. A choice that forces a tool holds for the first step only: else no turn would end.
fn ask(request: &Request, items: &[Item], again: bool) -> ModelRequest {
    let mut tool_choice = request.tool_choice.clone();
    if again {
        match &mut tool_choice {
            ToolChoice::Allowed { mode, .. } => *mode = AllowedMode::Auto,
            ToolChoice::Mode(ChoiceMode::Required) | ToolChoice::Tool(_) => {
                tool_choice = ToolChoice::Mode(ChoiceMode::Auto);
            }
            ToolChoice::Mode(_) => {}
        }
    }
    let tools = request.tools.iter().map(|tool| match tool {
        Tool::Function(function) => function.clone(),
        Tool::CodeInterpreter { .. } => interpreter(),
    });
    ModelRequest {
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        items: items.to_vec(),
        tools: tools.collect(),
        tool_choice,
        parallel_tool_calls: request.parallel_tool_calls,
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        text: request.text.clone(),
        reasoning: request.reasoning.clone(),
    }
}

/// The interpreter as a model is told of it.
fn interpreter() -> Function {
    let parameters = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "Python code. The value of its last expression is shown."},
            "requirements": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Packages that are needed besides those that are there, such as `rapidfuzz`.",
            },
        },
        "required": ["code"],
        "additionalProperties": false,
    });
    Function {
        name: INTERPRETER.to_owned(),
        description: Some(
            "Runs Python in a sandbox without a network and shows what it prints, its last value, tables and charts. \
             Variables and files are kept from call to call."
                .to_owned(),
        ),
        parameters: parameters.as_object().cloned(),
        strict: None,
    }
}

/// What a client is told of a provider that failed.
pub(crate) fn told(error: &ProviderError) -> ApiError {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the model's provider failed"
    );
    let (kind, code) = match error {
        ProviderError::Status { status: 429, .. } => (ErrorKind::TooManyRequests, "rate_limit_exceeded"),
        error if error.is_too_long() => (ErrorKind::InvalidRequestError, "context_length_exceeded"),
        _ => (ErrorKind::ModelError, "server_error"),
    };
    ApiError {
        kind,
        code: Some(code.to_owned()),
        message: error.to_string(),
        param: None,
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
