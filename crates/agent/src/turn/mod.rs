//! A turn: a request, the model's steps that answer it, and the code that these run.
//!
//! ```text
//! Turn::run ── Provider::stream ──> text, reasoning, calls ──> Events, as they come
//!     ▲              │                 │
//!     │              └ no calls: the end ├ code, tool of a toolset: ToolsetCall over a Place    function of the client: the end
//!     │                                  └ tool of a server: ToolServer::call, kept whole under an alias
//!     └───────────── results ────────────────────┘
//! ```
//!
//! The arguments of a call of code are decoded while they stream, so that the client sees code as the
//! model writes it. A container is named before its code, and its sandbox is created when the code
//! runs.
//!
//! The end is always sent: `completed`, `incomplete` with a reason, or `failed`. If the client
//! disconnects, the model and the code are stopped, unless the response runs in the background.

mod approve;
mod best_effort;
mod builder;
mod call_result;
mod calls;
mod chart;
mod cite;
mod code_call;
mod compact;
mod conclude;
mod deferral;
mod derived;
mod evidence;
mod fetch;
mod form;
mod functions;
mod loading;
mod offer;
mod outcome;
mod patch;
mod plan;
mod program;
mod program_seal;
mod progress;
mod ran_report;
mod research;
mod runner;
mod search;
mod session;
mod shell;
mod step;
mod summary;
mod suspended;
#[cfg(test)]
mod tests;
mod toolset;

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::contract::Attempts;
use cellblock_interpreter::toolset::{ToolsetTerms, WriteTerms};
use cellblock_settings::clock;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::provider::{Finish, INTERPRETER, ModelRequest, Provider, ProviderError};
use crate::tools::Catalog;
use crate::wire::{
    ApiError, Draft, ErrorKind, Ids, Item, ItemStatus, Message, Part, Response, ResponseRequest, Role,
    StreamEvent, TokenUsage, Tool, paused_programs,
};

pub use call_result::{CallResult, OutputFile};
pub use code_call::{CLIENT_FUNCTIONS, client_functions};
pub use derived::{AnswerArtifact, DerivationOutcome, DerivedFacts};
pub use evidence::{Evidence, EvidenceRoom, KeptResult, NotKept};
pub use fetch::whole_elsewhere;
pub use plan::{ChartIntent, Plan};
pub use program_seal::{ProgramSeal, ProgramStart};
pub use research::{DerivationTerms, Research};
pub use runner::{CallSandbox, Runner};
pub use session::{ExecutionView, SessionRunner, failed, tell};
pub use summary::{SummarySeal, since_summary, summarize, summary_item};
pub use suspended::SuspendedCode;
pub use toolset::ToolsetCall;

use builder::{ResponseBuilder, Stop};
use calls::StepOutcome;
use deferral::DeferredTools;
use functions::Functions;
use program_seal::PlainSeal;
use step::{Call, ModelStep};
use suspended::Suspension;

/// Answers requests with a model and a runner of its code.
#[derive(Clone)]
pub struct Turn {
    provider: Arc<dyn Provider>,
    runner: Arc<dyn Runner>,
    steps: u32,
    ids: Ids,
    until: CancellationToken,
    research: Option<Arc<Research>>,
    /// Functions that code can call, for the model's prompt.
    catalog: String,
    /// Connectors that the request lends to its code.
    lent: Vec<Arc<dyn Connector>>,
    suspension: Suspension,
    /// Maximum time of a command of a shell, and of a run of a program.
    max_timeout: Duration,
    /// Whether the client can be asked to approve calls of code.
    asks: bool,
    /// Seal of summaries; without one, no conversation is compacted.
    seal: Option<Arc<dyn SummarySeal>>,
    /// Seal of programs.
    program_seal: Arc<dyn ProgramSeal>,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// End of the steps.
#[derive(Debug, PartialEq, Eq)]
enum StepsEnd {
    /// The model answered with this text.
    Answer(String),
    /// The client has to call its functions.
    Client,
    /// The maximum number of steps was reached.
    Steps,
    /// Derivations failed too often, and the model did nothing else.
    Attempts,
    /// The model's answer was cut off, for this reason.
    Cut(&'static str),
}

impl Turn {
    /// Creates a turn of at most 20 model calls.
    pub fn new(provider: Arc<dyn Provider>, runner: Arc<dyn Runner>) -> Self {
        Self {
            provider,
            runner,
            steps: 20,
            ids: Ids::random(),
            until: CancellationToken::new(),
            research: None,
            catalog: String::new(),
            lent: Vec::new(),
            suspension: Suspension::default(),
            max_timeout: ToolsetTerms::default().max_timeout,
            asks: false,
            seal: None,
            program_seal: Arc::new(PlainSeal),
        }
    }

    /// Tells the model which functions its code can call. Code that derives from fetched data can call none.
    #[must_use]
    pub fn catalog(mut self, catalog: String) -> Self {
        self.catalog = catalog;
        self
    }

    /// Lends connectors to code, except code that derives from fetched data.
    #[must_use]
    pub fn lending(mut self, connectors: Vec<Arc<dyn Connector>>) -> Self {
        self.lent = connectors;
        self
    }

    /// Fetches with tools of servers, and lets code derive from the results.
    #[must_use]
    pub fn research(mut self, research: Option<Research>) -> Self {
        self.research = research.map(Arc::new);
        self
    }

    /// Sets the maximum number of model calls.
    #[must_use]
    pub const fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the maximum time of a command of a shell, and of a run of a program.
    #[must_use]
    pub const fn max_timeout(mut self, max_timeout: Duration) -> Self {
        self.max_timeout = max_timeout;
        self
    }

    /// Asks the client to approve calls of code that need approval, which fail otherwise.
    #[must_use]
    pub const fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Compacts conversations of requests that want it, and seals the summaries.
    #[must_use]
    pub fn sealing(mut self, seal: Arc<dyn SummarySeal>) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Sets the seal of programs, which a client keeps while they wait for it.
    #[must_use]
    pub fn sealing_programs(mut self, seal: Arc<dyn ProgramSeal>) -> Self {
        self.program_seal = seal;
        self
    }

    /// Fails the turn when this token is canceled, because the server is stopping.
    #[must_use]
    pub fn until(mut self, ending: CancellationToken) -> Self {
        self.until = ending;
        self
    }

    /// Sets the generator of ids.
    #[must_use]
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// Answers a request. `response` is its initial response; `earlier` is the conversation that it
    /// continues. Events are sent as they happen, the last one before this returns.
    pub async fn run(
        &self,
        request: &ResponseRequest,
        response: Response,
        earlier: Vec<Item>,
        events: mpsc::Sender<StreamEvent>,
    ) -> Response {
        let mut conversation = earlier;
        conversation.extend(request.input.iter().cloned());
        self.converse(request, response, &mut conversation, events).await
    }

    /// Does the same with the model's whole input in `conversation`, including that of the request.
    /// The model's texts and results are added to it, so that another turn can continue from there.
    pub async fn converse(
        &self,
        request: &ResponseRequest,
        response: Response,
        conversation: &mut Vec<Item>,
        events: mpsc::Sender<StreamEvent>,
    ) -> Response {
        let mut telling = self.telling(request, response, conversation, events.clone());
        if let Some(deriving) = self
            .research
            .as_ref()
            .and_then(|research| research.deriving.as_ref())
        {
            telling.attempts = Arc::new(Mutex::new(Attempts::new(deriving.policy.max_attempts)));
        }
        let mut usage = TokenUsage::default();
        let ended = tokio::select! {
            ended = self.steps_of(request, conversation, &mut telling, &mut usage) => ended,
            // Dropping the steps stops their code.
            () = self.until.cancelled() => Err(Stop::Ending),
        };
        telling.conclude(&ended, conversation).await;
        let draft = telling.draft;
        let (response, last) = match ended {
            Ok(StepsEnd::Answer(_) | StepsEnd::Client) => draft.complete(usage, clock::unix_seconds()),
            Ok(StepsEnd::Cut(reason)) => draft.incomplete(reason, usage),
            Ok(StepsEnd::Steps) => draft.incomplete("max_steps", usage),
            Ok(StepsEnd::Attempts) => draft.incomplete("max_attempts", usage),
            Err(Stop::Gone) => draft.incomplete("client_gone", usage),
            Err(Stop::Failed(error)) => draft.fail(told(&error), counted(usage)),
            Err(Stop::Unsealed(error)) => draft.fail(error, counted(usage)),
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

    /// Returns the model's first request, only for counting its tokens.
    pub async fn first(
        &self,
        request: &ResponseRequest,
        response: Response,
        conversation: Vec<Item>,
    ) -> Result<ModelRequest, ApiError> {
        let (sender, mut events) = mpsc::channel(1);
        let mut telling = self.telling(request, response, &conversation, sender);
        let asking = async {
            telling.ask_servers().await?;
            telling.load_earlier();
            let items = self.runner.read(conversation).await;
            Ok::<_, Stop>(telling.asked(request, items, &self.alike(), false))
        };
        let mut asking = std::pin::pin!(asking);
        loop {
            let asked = tokio::select! {
                asked = &mut asking => asked,
                // The events have no receiver.
                Some(_) = events.recv() => continue,
            };
            return asked.map_err(|stop| match stop {
                Stop::Failed(error) => told(&error),
                Stop::Unsealed(error) => error,
                Stop::Gone | Stop::Ending => server_ending(),
            });
        }
    }

    fn telling<'a>(
        &'a self,
        request: &ResponseRequest,
        response: Response,
        conversation: &[Item],
        events: mpsc::Sender<StreamEvent>,
    ) -> ResponseBuilder<'a> {
        let deferral = DeferredTools::of(&request.tools, conversation);
        let functions = Functions::of(&request.tools, &deferral.earlier);
        ResponseBuilder {
            draft: Draft::begin(response),
            events,
            ids: self.ids.clone(),
            runner: Arc::clone(&self.runner),
            code: request.tools.iter().any(Tool::is_interpreter),
            shell: request.tools.iter().any(Tool::is_hosted_shell),
            program_seal: Arc::clone(&self.program_seal),
            max_timeout: self.max_timeout,
            writes: if self.asks {
                WriteTerms::Rehearsed
            } else {
                WriteTerms::Unasked
            },
            of_code: functions.of_code().into(),
            lent: &self.lent,
            functions,
            outputs: request.includes_outputs(),
            made: Vec::new(),
            catalog: Catalog::default(),
            deferral,
            research: self.research.as_deref(),
            progress: self.progress(),
            attempts: Arc::default(),
            emitted: Vec::new(),
            result: None,
            asked: Vec::new(),
        }
    }

    /// Takes steps until there is an answer, or a reason why it is incomplete.
    async fn steps_of(
        &self,
        request: &ResponseRequest,
        items: &mut Vec<Item>,
        telling: &mut ResponseBuilder<'_>,
        usage: &mut TokenUsage,
    ) -> Result<StepsEnd, Stop> {
        let mut left = request.max_tool_calls.unwrap_or(u64::MAX);
        telling.flush().await?;
        if !request.compaction.now {
            telling.ask_servers().await?;
            telling.load_earlier();
        }
        // The model's view of the conversation before this turn.
        let (read, before) = (self.runner.read(items.clone()).await, items.len());
        let question = summary::question(&since_summary(read.clone())).cloned();
        let alike = self.alike();
        let mut again = false;
        if let Some(code) = self.suspended() {
            let served = code.into_serving(telling).resume(telling).await?;
            if self.leaves(served, items, telling) {
                return Ok(StepsEnd::Client);
            }
            again = true;
        }
        let paused = paused_programs(items);
        if !paused.is_empty() {
            let served = calls::resume_programs(paused, telling).await?;
            if self.leaves(served, items, telling) {
                return Ok(StepsEnd::Client);
            }
            again = true;
        }
        let due = telling.due(request, items).await;
        if !due.is_empty() {
            items.extend(due.iter().map(Call::made));
            let served = calls::serve(due, &mut left, telling).await?;
            if self.leaves(served, items, telling) {
                return Ok(StepsEnd::Client);
            }
            again = true;
        }
        if request.compaction.now {
            let asked = [&read[..], &items[before..]].concat();
            let asked = telling.asked(request, asked, &alike, again);
            items.extend(Box::pin(self.compact(request, asked, telling, usage)).await?);
            return Ok(StepsEnd::Client);
        }
        while telling.progress.steps_left() > 0 {
            telling.progress.step();
            let asked = [&read[..], &items[before..]].concat();
            let mut asked = telling.asked(request, asked, &alike, again);
            if Box::pin(self.is_long(request, &asked, &telling.events)).await? {
                items.extend(Box::pin(self.compact(request, asked, telling, usage)).await?);
                items.extend(question.clone());
                let shorter = [&read[..], &items[before..]].concat();
                asked = telling.asked(request, shorter, &alike, again);
            }
            again = true;
            let stream = tokio::select! {
                stream = self.provider.stream(asked) => stream?,
                () = telling.events.closed() => return Err(Stop::Gone),
            };
            let mut step = ModelStep::follow(stream, telling).await?;
            *usage += step.usage;
            items.extend(step.thoughts(&mut telling.ids));
            items.extend(step.message(telling.ids.mint("msg")));
            match step.finish {
                // Calls that were cut off are not run.
                Finish::Length => return Ok(StepsEnd::Cut("max_output_tokens")),
                Finish::ContentFilter => return Ok(StepsEnd::Cut("content_filter")),
                Finish::Stop | Finish::Calls if step.calls.is_empty() => {
                    let Some(reminder) = telling.progress.reminder() else {
                        return Ok(StepsEnd::Answer(step.said));
                    };
                    items.push(notice(telling.ids.mint("msg"), reminder));
                    continue;
                }
                Finish::Stop | Finish::Calls => {}
            }
            step.hand_over(items, telling);
            let given_up = telling.progress.exhausted()
                && step
                    .calls
                    .iter()
                    .all(|call| call.namespace.is_none() && call.name == INTERPRETER);
            items.extend(step.calls.iter().map(|call| call.item(&mut telling.ids)));
            let for_client = step.calls.iter().any(Call::is_for_client);
            let served = calls::serve(step.calls, &mut left, telling).await?;
            if self.leaves(served, items, telling) || for_client {
                return Ok(StepsEnd::Client);
            }
            if given_up {
                return Ok(StepsEnd::Attempts);
            }
        }
        Ok(StepsEnd::Steps)
    }

    /// Adds the results of a step's calls. Returns whether the client continues: their code or a program
    /// waits for it, or code was rehearsed and needs approval.
    fn leaves(&self, served: StepOutcome, items: &mut Vec<Item>, telling: &mut ResponseBuilder<'_>) -> bool {
        let waits = match served {
            StepOutcome::Done(results) => {
                let is_call = |item: &Item| matches!(item, Item::FunctionCall(_));
                let waits = results.iter().any(is_call);
                items.extend(results);
                waits
            }
            StepOutcome::Waits(mut serving) => {
                items.extend(serving.take_programs());
                self.suspend(SuspendedCode::new(*serving, telling));
                true
            }
        };
        let asked = std::mem::take(&mut telling.asked);
        let asks = !asked.is_empty();
        items.extend(asked);
        waits || asks
    }
}

/// Returns a message to the model in the course of its turn. Templates of many models reject other
/// roles in the middle of a conversation.
fn notice(id: String, text: &str) -> Item {
    Item::Message(Message {
        id,
        status: ItemStatus::Completed,
        role: Role::User,
        content: vec![Part::InputText {
            text: format!("({text})"),
        }],
        phase: None,
    })
}

/// Unreported usage is unknown, not zero.
fn counted(usage: TokenUsage) -> Option<TokenUsage> {
    (usage != TokenUsage::default()).then_some(usage)
}

fn server_ending() -> ApiError {
    ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway was stopped before the response was whole; send the request again".to_owned(),
        param: None,
    }
}

/// Returns a client's error for a failed provider.
pub fn told(error: &ProviderError) -> ApiError {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the model's provider failed"
    );
    let (kind, code) = match error {
        ProviderError::Status { status: 429, .. } => (ErrorKind::TooManyRequests, "rate_limit_exceeded"),
        ProviderError::Unsupported { .. } => (ErrorKind::InvalidRequestError, "unsupported_parameter"),
        error if error.is_too_long() => (ErrorKind::InvalidRequestError, "context_length_exceeded"),
        _ => (ErrorKind::ModelError, "server_error"),
    };
    ApiError {
        kind,
        code: Some(code.to_owned()),
        message: error.to_string(),
        param: match error {
            ProviderError::Unsupported { param, .. } => Some((*param).to_owned()),
            _ => None,
        },
    }
}
