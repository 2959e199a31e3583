//! A turn without a model: scripted answers, whose code runs in a real sandbox. Prints what a
//! client would be sent.
//!
//! `cargo run --example turn -p cellblock-agent`

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::turn::{SessionRunner, Turn};
use cellblock_agent::wire::{DONE, Ids, Response, ResponseRequest, StreamEvent};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::session::SessionOptions;
use serde_json::json;
use tokio::sync::mpsc;

const DRAW: &str = "import matplotlib.pyplot as plt\nplt.plot([1, total])\nplt.show()";

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(answer())
}

async fn answer() -> Result<(), Box<dyn Error>> {
    let interpreter = Interpreter::builder().build().await?;
    let session = interpreter.session(SessionOptions::default());
    let run = |code: &str| {
        ScriptedAnswer::new().call("call", "code_interpreter", &json!({"code": code}).to_string())
    };
    let provider = ScriptedProvider::new([
        run("total = sum(range(10))\nprint('added')\ntotal"),
        run("totl"),
        run(DRAW),
        run("import os\nopen('/workspace/total.txt', 'w').write(str(total))\nos._exit(1)"),
        ScriptedAnswer::new().text("The total is 45."),
    ]);
    let mut ids = Ids::random();
    let body = json!({
        "model": "scripted",
        "input": "What is the total?",
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
        "include": ["code_interpreter_call.outputs"],
    });
    let request = ResponseRequest::parse(body.to_string().as_bytes(), &mut ids)?;
    let response = Response::new(&request, ids.mint("resp"), 0);
    let runner = SessionRunner::new(ids.mint("cntr"), session.clone(), interpreter.clone());
    let turn = Turn::new(Arc::new(provider), Arc::new(runner));
    let (sender, mut events) = mpsc::channel::<StreamEvent>(16);
    let printing = async {
        let mut stdout = std::io::stdout();
        while let Some(event) = events.recv().await {
            stdout.write_all(event.frame().as_bytes())?;
        }
        stdout.write_all(DONE.as_bytes())
    };
    let (_, printed) = tokio::join!(turn.run(&request, response, Vec::new(), sender), printing);
    printed?;
    session.close().await?;
    Ok(())
}
