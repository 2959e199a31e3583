//! A turn lets go of its runner, and so of the sandbox behind it, exactly once and with no code
//! left running, however it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{code, request};
use crate::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use crate::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use crate::turn::{CallResult, CallSandbox, Runner, ToolsetCall, Turn};
use crate::wire::{Response, StreamEvent};

/// Record of what became of a turn's sandbox.
#[derive(Debug, Default)]
struct Ledger {
    started: AtomicUsize,
    running: AtomicUsize,
    disposed: AtomicUsize,
    /// Notified when code runs or the model is asked that never answers.
    waits: Notify,
}

/// The one sandbox, held as a session's runner holds its session.
struct Sandbox(Arc<Ledger>);

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.0.disposed.fetch_add(1, Ordering::SeqCst);
    }
}

struct Owner(Arc<Sandbox>);

impl Runner for Owner {
    fn place(&self, _before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        let place: Arc<dyn CallSandbox> = Arc::new(SandboxHandle(Arc::clone(&self.0)));
        Box::pin(async { place })
    }
}

struct SandboxHandle(Arc<Sandbox>);

/// Code that runs.
struct CodeGuard<'a>(&'a Ledger);

impl Drop for CodeGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CallSandbox for SandboxHandle {
    fn container(&self) -> &'static str {
        "cntr_1"
    }

    fn run(&self, code: ToolsetCall) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let ledger = &self.0.0;
            ledger.started.fetch_add(1, Ordering::SeqCst);
            ledger.running.fetch_add(1, Ordering::SeqCst);
            let _running = CodeGuard(ledger);
            match code.code() {
                "wait" => {
                    ledger.waits.notify_one();
                    std::future::pending().await
                }
                "panic" => panic!("a runner that is broken"),
                _ => CallResult::refused("no"),
            }
        })
    }
}

/// Action of the model when it is called.
enum ModelAction {
    Answer(ScriptedAnswer),
    Panic,
    Wait,
}

struct ActionProvider {
    left: Mutex<VecDeque<ModelAction>>,
    ledger: Arc<Ledger>,
}

impl Provider for ActionProvider {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let act = self.left.lock().pop_front();
            match act {
                Some(ModelAction::Answer(answer)) => ScriptedProvider::new([answer]).stream(request).await,
                Some(ModelAction::Panic) => panic!("a provider that is broken"),
                Some(ModelAction::Wait) => {
                    self.ledger.waits.notify_one();
                    std::future::pending().await
                }
                None => Err(ProviderError::Request {
                    message: "the script is at its end".to_owned(),
                }),
            }
        })
    }
}

fn runs(text: &str) -> ModelAction {
    ModelAction::Answer(ScriptedAnswer::new().call("c", "code_interpreter", &code(text)))
}

fn answer() -> ModelAction {
    ModelAction::Answer(ScriptedAnswer::new().text("Done."))
}

/// A turn of at most two steps, which runs in a task of its own.
struct TurnTask {
    ledger: Arc<Ledger>,
    ending: CancellationToken,
    events: mpsc::Receiver<StreamEvent>,
    turn: JoinHandle<Response>,
}

fn turn(acts: impl IntoIterator<Item = ModelAction>) -> (Turn, Arc<Ledger>, CancellationToken) {
    let ledger = Arc::<Ledger>::default();
    let provider = ActionProvider {
        left: Mutex::new(acts.into_iter().collect()),
        ledger: Arc::clone(&ledger),
    };
    let runner = Owner(Arc::new(Sandbox(Arc::clone(&ledger))));
    let ending = CancellationToken::new();
    let turn = Turn::new(Arc::new(provider), Arc::new(runner))
        .steps(2)
        .until(ending.clone());
    (turn, ledger, ending)
}

fn start(acts: impl IntoIterator<Item = ModelAction>) -> TurnTask {
    let (turn, ledger, ending) = turn(acts);
    let (sender, events) = mpsc::channel(64);
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    TurnTask {
        ledger,
        ending,
        events,
        turn: tokio::spawn(async move { turn.run(&request, response, Vec::new(), sender).await }),
    }
}

impl Ledger {
    /// Asserts that so much code was started, that none of it is left, and that the sandbox was
    /// disposed of once.
    fn is_closed(&self, started: usize) {
        let of = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        let found = (of(&self.started), of(&self.running), of(&self.disposed));
        assert_eq!(found, (started, 0, 1));
    }
}

#[tokio::test]
async fn every_ordinary_end_disposes_of_the_sandbox_once() {
    let ends: [(Vec<ModelAction>, usize, &str); 4] = [
        (vec![answer()], 0, "completed"),
        (vec![runs("x"), answer()], 1, "completed"),
        (vec![runs("x")], 1, "failed"),
        (vec![runs("x"), runs("x")], 2, "incomplete"),
    ];
    for (acts, started, status) in ends {
        let turn = start(acts);
        let response = turn.turn.await.unwrap();
        assert_eq!(json!(response)["status"], status);
        turn.ledger.is_closed(started);
    }
}

#[tokio::test]
async fn a_panic_of_the_model_or_of_the_code_s_runner_disposes_of_it() {
    for (acts, started) in [
        ([runs("x"), ModelAction::Panic], 1),
        ([runs("panic"), answer()], 1),
    ] {
        let turn = start(acts);
        assert!(turn.turn.await.unwrap_err().is_panic());
        turn.ledger.is_closed(started);
    }
}

#[tokio::test]
async fn a_turn_that_is_canceled_disposes_of_it() {
    for (acts, started) in [([runs("x"), ModelAction::Wait], 1), ([runs("wait"), answer()], 1)] {
        let turn = start(acts);
        turn.ledger.waits.notified().await;
        turn.turn.abort();
        assert!(turn.turn.await.unwrap_err().is_cancelled());
        turn.ledger.is_closed(started);
    }
}

#[tokio::test]
async fn a_client_that_is_gone_and_a_server_that_ends_dispose_of_it() {
    for gone in [true, false] {
        let TurnTask {
            ledger,
            ending,
            events,
            turn,
        } = start([runs("wait"), answer()]);
        ledger.waits.notified().await;
        let _events = if gone {
            drop(events);
            None
        } else {
            ending.cancel();
            Some(events)
        };
        turn.await.unwrap();
        ledger.is_closed(1);
    }
}

#[tokio::test]
async fn a_turn_that_never_started_disposes_of_it() {
    let (turn, ledger, _) = turn([answer()]);
    let (sender, _events) = mpsc::channel(1);
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    drop(turn.run(&request, response, Vec::new(), sender));
    drop(turn);
    ledger.is_closed(0);
}
