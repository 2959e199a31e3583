//! Programs that wait for results of tools: each is in its kernel, at the call, until its client comes back.
//!
//! ```text
//! code ──call──> ClientTools ──> Program ──tool_call_required──> client
//!   ^                               │                              │
//!   └──────── result ───────────────┴──── continuation_token <─────┘
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, Redaction,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::Problem;

/// The name that the tools have in code; each also has one of its own.
pub(super) const TOOLS: &str = "tools";
/// Calls that come within this time of each other are one round.
const TOGETHER: Duration = Duration::from_millis(25);
/// Maximum number of calls in one round.
const MAX_CALLS: usize = 100;
/// Maximum time for which a program waits for its client.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// Maximum number of programs that wait, of one owner.
const MAX_WAITING: usize = 32;

/// The programs that wait, by their continuation tokens, and what a client can cancel.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    waiting: Mutex<HashMap<String, (Program, Instant)>>,
    requests: Arc<Mutex<Requests>>,
}

/// Requests that run, by their owners and the ids that clients give them.
type Requests = HashMap<(String, String), CancellationToken>;

/// A request that can be canceled by its id, until this is dropped.
#[derive(Debug)]
pub(super) struct NamedRequest {
    requests: Arc<Mutex<Requests>>,
    key: (String, String),
    /// Canceled by its client.
    pub(super) over: CancellationToken,
}

impl Drop for NamedRequest {
    fn drop(&mut self) {
        locked(&self.requests).remove(&self.key);
    }
}

/// A program that runs, or waits for results.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) owner: String,
    /// The calls that it waits for.
    pub(super) pending: HashMap<String, oneshot::Sender<ToolResult>>,
    pub(super) calls: mpsc::Receiver<ToolCall>,
    /// Receiver of its result.
    pub(super) done: oneshot::Receiver<Result<Value, Problem>>,
    /// Number of calls until now.
    pub(super) count: usize,
    /// Stops the program when this is dropped.
    pub(super) _stop: DropGuard,
}

/// A call of a tool by code.
#[derive(Debug)]
pub(super) struct ToolCall {
    name: String,
    input: Value,
    answer: oneshot::Sender<ToolResult>,
}

/// A result of a tool, or its failure.
pub(super) type ToolResult = Result<Value, String>;

/// Next action of a program.
#[derive(Debug)]
pub(super) enum ProgramStep {
    /// It waits for these calls.
    Calls(Vec<Value>),
    /// It has ended.
    Done(Result<Value, Problem>),
}

impl Program {
    /// Waits until it calls tools, or ends.
    pub(super) async fn next(&mut self) -> ProgramStep {
        let first = tokio::select! {
            biased;
            Some(call) = self.calls.recv() => call,
            done = &mut self.done => return ProgramStep::Done(ended(done)),
        };
        let mut calls = vec![self.note(first)];
        // Code may make several calls at once.
        while calls.len() < MAX_CALLS {
            match tokio::time::timeout(TOGETHER, self.calls.recv()).await {
                Ok(Some(call)) => calls.push(self.note(call)),
                Ok(None) | Err(_) => break,
            }
        }
        ProgramStep::Calls(calls)
    }

    fn note(&mut self, call: ToolCall) -> Value {
        self.count += 1;
        let id = format!("call_{:03}", self.count);
        self.pending.insert(id.clone(), call.answer);
        json!({"id": id, "name": call.name, "input": call.input})
    }
}

fn ended(done: Result<Result<Value, Problem>, oneshot::error::RecvError>) -> Result<Value, Problem> {
    done.unwrap_or_else(|error| Err(Problem::server("finish the program", &error)))
}

impl Rounds {
    /// Lets a program wait for its client; returns whether it may.
    pub(super) fn wait(&self, token: &str, program: Program) -> Result<(), Problem> {
        let mut waiting = self.waiting();
        waiting.retain(|_, (_, since)| since.elapsed() < PATIENCE);
        let of = |it: &&(Program, Instant)| it.0.owner == program.owner;
        if waiting.values().filter(of).count() >= MAX_WAITING {
            return Err(Problem::invalid(format!(
                "{MAX_WAITING} programs wait for results, which is the limit; send the results of one"
            )));
        }
        waiting.insert(token.to_owned(), (program, Instant::now()));
        Ok(())
    }

    /// Takes the program of a token, which is used up.
    pub(super) fn take(&self, owner: &str, token: &str) -> Result<Program, Problem> {
        let mut waiting = self.waiting();
        let own = waiting
            .get(token)
            .is_some_and(|(program, since)| program.owner == owner && since.elapsed() < PATIENCE);
        let found = own.then(|| waiting.remove(token)).flatten();
        let (program, _) = found.ok_or_else(|| {
            Problem::invalid(
                "invalid continuation_token: it is unknown, was used before, or has expired; run \
                 the code again",
            )
        })?;
        Ok(program)
    }

    /// Ends a program whose client has not come back.
    pub(super) fn give_up(&self, token: &str) {
        if self.waiting().remove(token).is_some() {
            tracing::info!("a program waited too long for results of tools");
        }
    }

    /// Names a request, so that it can be canceled while it runs.
    pub(super) fn begin(&self, owner: &str, request: &str) -> NamedRequest {
        let key = (owner.to_owned(), request.to_owned());
        let over = CancellationToken::new();
        locked(&self.requests).insert(key.clone(), over.clone());
        NamedRequest {
            requests: Arc::clone(&self.requests),
            key,
            over,
        }
    }

    /// Cancels a request; says whether there is one.
    pub(super) fn cancel(&self, owner: &str, request: &str) -> bool {
        let requests = locked(&self.requests);
        let found = requests.get(&(owner.to_owned(), request.to_owned()));
        found.inspect(|over| over.cancel()).is_some()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, (Program, Instant)>> {
        locked(&self.waiting)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The tools of a client as functions that code calls.
#[derive(Debug)]
pub(super) struct ClientTools {
    /// The tools' names, by the names of their cards.
    pub(super) names: Vec<(String, String)>,
    pub(super) calls: mpsc::Sender<ToolCall>,
    pub(super) redaction: Redaction,
}

impl Connector for ClientTools {
    fn name(&self) -> &'static str {
        TOOLS
    }

    fn description(&self) -> &'static str {
        "Tools of the user's application."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = self.names.iter().map(|(name, _)| Card {
            name: name.clone(),
            // The application checks the arguments of its own tools.
            parameters: json!({"type": "object", "additionalProperties": true}),
            effect: FetchEffect::Writes,
            ..Card::default()
        });
        let cards = cards.collect();
        async { Ok(cards) }.boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let known = self.names.iter().find(|(name, _)| name == function);
        let name = known.map(|(_, name)| name.clone()).unwrap_or_default();
        async move {
            let (answer, answered) = oneshot::channel();
            let input = Value::Object(arguments);
            let shown = name.clone();
            // A call that nobody takes is answered by nobody, which is noticed below.
            let _ = self.calls.send(ToolCall { name, input, answer }).await;
            match answered.await {
                Ok(Ok(value)) => Ok(FetchAnswer::Value(value)),
                Ok(Err(message)) => {
                    let kind = ConnectorErrorKind::Provider { status: None };
                    Err(ConnectorError::new(kind, format!("{shown}: {message}")))
                }
                Err(_) => {
                    let text = format!("{shown}: the user's application did not answer in time");
                    Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
                }
            }
        }
        .boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn waits_for_client(&self) -> bool {
        true
    }
}
