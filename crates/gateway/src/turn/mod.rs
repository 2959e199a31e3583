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

mod calls;
mod cite;
mod runner;
mod session;
mod step;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::now;
use crate::provider::{Finish, INTERPRETER, ModelRequest, Provider, ProviderError};
use crate::wire::{
    AllowedMode, ApiError, ChoiceMode, Draft, ErrorKind, Event, Function, Ids, Item, Request, Response, Tool,
    ToolChoice, Usage,
};

pub use runner::{Code, Made, Place, Ran, Runner};
pub use session::SessionRunner;
pub(crate) use session::{Shown, tell, words};

use step::{Step, Stop, Wants};

/// Answers requests with a model and a runner of its code.
#[derive(Clone)]
pub struct Turn {
    provider: Arc<dyn Provider>,
    runner: Arc<dyn Runner>,
    steps: u32,
    ids: Ids,
    until: CancellationToken,
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
struct Telling<'a> {
    draft: Draft,
    events: mpsc::Sender<Event>,
    ids: Ids,
    /// What runs code, if the request allows any.
    runner: Option<&'a dyn Runner>,
    functions: Vec<String>,
    /// Whether outputs of code are told.
    outputs: bool,
    /// Files that code made and no text has cited yet.
    made: Vec<Made>,
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
    pub fn new(provider: Arc<dyn Provider>, runner: Arc<dyn Runner>) -> Self {
        Self {
            provider,
            runner,
            steps: 20,
            ids: Ids::random(),
            until: CancellationToken::new(),
        }
    }

    /// Takes at most so many model calls.
    #[must_use]
    pub const fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Fails when this is cancelled, as the server is ending.
    #[must_use]
    pub fn until(mut self, ending: CancellationToken) -> Self {
        self.until = ending;
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
            runner: request.tools.iter().any(hosted).then_some(&*self.runner),
            functions: request
                .tools
                .iter()
                .filter(|tool| !hosted(tool))
                .map(|tool| tool.name().to_owned())
                .collect(),
            outputs: request.includes_outputs(),
            made: Vec::new(),
        };
        let mut usage = Usage::default();
        let ended = tokio::select! {
            ended = self.steps_of(request, conversation, &mut telling, &mut usage) => ended,
            // Dropping the steps stops the code that they run.
            () = self.until.cancelled() => Err(Stop::Ending),
        };
        let draft = telling.draft;
        let (response, last) = match ended {
            Ok(None) => draft.complete(usage, now()),
            Ok(Some(reason)) => draft.incomplete(reason, usage),
            Err(Stop::Gone) => draft.incomplete("client_gone", usage),
            Err(Stop::Failed(error)) => draft.fail(told(&error), counted(usage)),
            Err(Stop::Ending) => draft.fail(server_ending(), counted(usage)),
        };
        crate::metrics::turn_ended(response.status);
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
        // What the model reads of what came before this turn.
        let (read, before) = (self.runner.read(items.clone()).await, items.len());
        let interpreter = interpreter(&self.runner.files(), self.runner.about());
        for taken in 0..self.steps {
            let asked = [&read[..], &items[before..]].concat();
            let asked = ask(request, asked, &interpreter, taken > 0);
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
            items.extend(calls::serve(step.calls, &mut left, telling).await?);
            if for_client {
                return Ok(None);
            }
        }
        Ok(Some("max_steps"))
    }
}

/// What a model is asked in one step. A choice that forces a tool holds for the first step only: else no turn would end.
fn ask(request: &Request, items: Vec<Item>, interpreter: &Function, again: bool) -> ModelRequest {
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
        Tool::CodeInterpreter { .. } => interpreter.clone(),
    });
    ModelRequest {
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        items,
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

/// Paths of files that a model is told of; beyond them there are too many to name.
const NAMED: usize = 100;

/// The interpreter as a model is told of it.
fn interpreter(files: &[String], about: Option<&str>) -> Function {
    let code = match about {
        None => "Python code. The value of its last expression is shown.",
        Some(_) => "A Python program. What it prints is shown.",
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": code},
            "requirements": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Packages that are needed besides those that are there, such as `rapidfuzz`.",
            },
        },
        "required": ["code"],
        "additionalProperties": false,
    });
    let mut description = match about {
        None => "Runs Python in a sandbox without a network and shows what it prints, its last value, tables and charts. \
                 Variables and files are kept from call to call. The current directory is `/mnt/data`: write a file there to \
                 hand it to the user, and link it in the answer as `[name](sandbox:/mnt/data/name)`."
            .to_owned(),
        Some(about) => format!("Runs Python in a sandbox and shows what it prints, and pictures that it writes. {about}"),
    };
    if !files.is_empty() {
        let named: Vec<_> = files.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
        let more = files.len() - named.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let named = named.join(", ");
        // Writing to a string does not fail.
        let _ = write!(description, " Files that are there: {named}{more}.");
    }
    Function {
        name: INTERPRETER.to_owned(),
        description: Some(description),
        parameters: parameters.as_object().cloned(),
        strict: None,
    }
}

/// What nobody counted is not nothing.
fn counted(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

fn server_ending() -> ApiError {
    ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway was stopped before the response was whole; send the request again".to_owned(),
        param: None,
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
