//! A turn whose runner holds a session returns the session's sandbox, however the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use cellblock_agent::turn::{SessionRunner, Turn};
use cellblock_agent::wire::{Ids, Response, ResponseRequest, StreamEvent};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::wait::until;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const BUSY: &str = "while True: pass";

/// Answers once as scripted, then panics.
struct Panics {
    scripted: ScriptedProvider,
    asked: AtomicBool,
}

impl Provider for Panics {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        assert!(
            !self.asked.swap(true, Ordering::SeqCst),
            "a provider that is broken"
        );
        self.scripted.stream(request)
    }
}

fn calls(code: &str) -> ScriptedProvider {
    let arguments = json!({"code": code}).to_string();
    ScriptedProvider::new([
        ScriptedAnswer::new().call("call", "code_interpreter", &arguments),
        ScriptedAnswer::new().text("Done."),
    ])
}

/// A turn that runs, and the id of its sandbox, which nobody else holds.
struct RunningTurn {
    turn: JoinHandle<Response>,
    events: mpsc::Receiver<StreamEvent>,
    sandbox: String,
}

async fn start(interpreter: &Interpreter, provider: impl Provider + 'static) -> RunningTurn {
    let session = interpreter.session(SessionOptions::default());
    let sandbox = session.prepare().await.unwrap().sandbox;
    let body = json!({
        "model": "m", "input": "go", "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
    });
    let request = ResponseRequest::parse(body.to_string().as_bytes(), &mut Ids::random()).unwrap();
    let response = Response::new(&request, "resp_1".to_owned(), 0);
    let runner = SessionRunner::new("cntr_1".to_owned(), session, interpreter.clone());
    let turn = Turn::new(Arc::new(provider), Arc::new(runner));
    let (sender, events) = mpsc::channel(64);
    RunningTurn {
        turn: tokio::spawn(async move { turn.run(&request, response, Vec::new(), sender).await }),
        events,
        sandbox,
    }
}

impl RunningTurn {
    /// Waits until the code runs.
    async fn runs(&mut self) {
        while let Some(event) = self.events.recv().await {
            if event
                .frame()
                .contains("response.code_interpreter_call.interpreting")
            {
                return;
            }
        }
        panic!("the code never ran");
    }

    async fn returned(&self, interpreter: &Interpreter) {
        let given_back = || !interpreter.sandboxes_in_use().contains(&self.sandbox);
        until("the sandbox is given back", given_back).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_returns_its_sandbox_when_it_ends_panics_or_is_canceled_in_a_cell() {
    let interpreter = Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .build()
        .await
        .unwrap();

    let mut answered = start(&interpreter, calls("1")).await;
    while answered.events.recv().await.is_some() {}
    (&mut answered.turn).await.unwrap();
    answered.returned(&interpreter).await;

    let broken = Panics {
        scripted: calls("1"),
        asked: AtomicBool::new(false),
    };
    let mut panicked = start(&interpreter, broken).await;
    while panicked.events.recv().await.is_some() {}
    assert!((&mut panicked.turn).await.unwrap_err().is_panic());
    panicked.returned(&interpreter).await;

    let mut canceled = start(&interpreter, calls(BUSY)).await;
    canceled.runs().await;
    canceled.turn.abort();
    canceled.returned(&interpreter).await;

    let mut left = start(&interpreter, calls(BUSY)).await;
    left.runs().await;
    left.events.close();
    (&mut left.turn).await.unwrap();
    left.returned(&interpreter).await;
}
