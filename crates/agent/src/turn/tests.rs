//! Turns with scripted models and a runner that answers as it is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cellblock_interpreter::toolset::program::PROGRAM;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc};

use super::{CallResult, CallSandbox, OutputFile, Research, Runner, ToolsetCall, Turn};
use crate::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use crate::provider::{ModelRequest, Provider, ProviderError};
use crate::wire::order::Order;
use crate::wire::{
    CallReport, FunctionOutput, Ids, InterpreterOutput, ItemStatus, Response, ResponseRequest, StreamEvent,
};

mod disposal;
mod namespaces;
mod programs;
mod search;
mod servers;
mod shell;

/// Says back the code that it gets. Code that says `wait` never ends, `meet` ends when a second one
/// meets it, `make NAME` makes a file.
#[derive(Debug)]
struct Echo {
    ran: Mutex<Vec<ToolsetCall>>,
    /// Containers of the calls that ran.
    places: Mutex<Vec<String>>,
    stops: AtomicUsize,
    meeting: Barrier,
    /// Whether all calls share one container.
    shared: bool,
    /// Note about the hosts that code reaches.
    network: Option<&'static str>,
    /// Reports of programs, each for one run.
    reports: Mutex<VecDeque<Value>>,
}

impl Echo {
    fn new(shared: bool) -> Self {
        Self {
            ran: Mutex::default(),
            places: Mutex::default(),
            stops: AtomicUsize::new(0),
            meeting: Barrier::new(2),
            shared,
            network: None,
            reports: Mutex::default(),
        }
    }
}

/// The echo, as the runner of a turn.
struct Echoes(Arc<Echo>);

struct EchoPlace {
    echo: Arc<Echo>,
    container: String,
}

impl Runner for Echoes {
    fn files(&self) -> Vec<String> {
        vec!["/mnt/data/in.csv".to_owned()]
    }

    fn network(&self) -> Option<&str> {
        self.0.network
    }

    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        let container = format!("cntr_{}", if self.0.shared { 1 } else { before + 1 });
        let echo = Arc::clone(&self.0);
        Box::pin(async move { Arc::new(EchoPlace { echo, container }) as Arc<dyn CallSandbox> })
    }
}

/// Counts a run that is dropped before its end.
struct Stops<'a>(Option<&'a Echo>);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        if let Some(echo) = self.0 {
            echo.stops.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl CallSandbox for EchoPlace {
    fn container(&self) -> &str {
        &self.container
    }

    fn run(&self, code: ToolsetCall) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            self.echo.ran.lock().push(code.clone());
            self.echo.places.lock().push(self.container.clone());
            let mut stops = Stops(Some(&self.echo));
            match code.code() {
                "wait" => std::future::pending::<()>().await,
                "meet" => {
                    self.echo.meeting.wait().await;
                }
                _ => {}
            }
            stops.0 = None;
            let report = (code.tool == PROGRAM).then(|| self.echo.reports.lock().pop_front());
            let logs = match report.flatten() {
                Some(report) => report.to_string(),
                None => format!("ran {}", code.code()),
            };
            let made = code.code().strip_prefix("make ").map(|name| OutputFile {
                container: self.container.clone(),
                id: format!("cfile_{name}"),
                path: format!("/mnt/data/{name}"),
            });
            CallResult {
                status: if code.code() == "slow" {
                    ItemStatus::Incomplete
                } else {
                    ItemStatus::Completed
                },
                outputs: vec![InterpreterOutput::Logs { logs: logs.clone() }],
                result: FunctionOutput::Text(logs),
                made: made.into_iter().collect(),
                derivation: None,
                report: CallReport::default(),
                asks: None,
            }
        })
    }
}

/// Result of a turn.
struct TurnRecord {
    response: Value,
    events: Vec<Value>,
    asked: Vec<ModelRequest>,
    ran: Vec<ToolsetCall>,
    /// The container of each.
    places: Vec<String>,
}

impl TurnRecord {
    fn names(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect()
    }

    /// The outputs of tools that the model was told before its last answer.
    fn results(&self) -> Vec<Value> {
        let items = json!(self.asked.last().unwrap().items);
        let items = items.as_array().unwrap().iter();
        items
            .filter(|item| item["type"] == "function_call_output")
            .map(|item| item["output"].clone())
            .collect()
    }
}

fn request(change: &Value) -> ResponseRequest {
    let mut body = json!({
        "model": "m", "input": "go", "include": ["code_interpreter_call.outputs"],
        "tools": [
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "function", "name": "get_weather"},
        ],
    });
    for (key, value) in change.as_object().unwrap().clone() {
        body[key] = value;
    }
    ResponseRequest::parse(body.to_string().as_bytes(), &mut Ids::counted()).unwrap()
}

async fn play(change: &Value, answers: Vec<ScriptedAnswer>) -> TurnRecord {
    play_in(Echo::new(false), change, answers).await
}

async fn play_in(echo: Echo, change: &Value, answers: Vec<ScriptedAnswer>) -> TurnRecord {
    play_with(echo, change, answers, None).await
}

async fn play_with(
    echo: Echo,
    change: &Value,
    answers: Vec<ScriptedAnswer>,
    research: Option<Research>,
) -> TurnRecord {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let runner = Arc::new(echo);
    let request = request(change);
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let turn = Turn::new(
        Arc::clone(&provider) as Arc<dyn Provider>,
        Arc::new(Echoes(Arc::clone(&runner))),
    )
    .steps(3)
    .research(research)
    .ids(Ids::counted());
    let (sender, mut receiver) = mpsc::channel(1);
    let reading = async {
        let mut events: Vec<StreamEvent> = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let (response, events) = tokio::join!(turn.run(&request, response, Vec::new(), sender), reading);
    let events: Vec<_> = events.iter().map(|event| json!(event)).collect();
    Order::check(&events).unwrap();
    assert_eq!(events.last().unwrap()["response"], json!(response));
    let ran = runner.ran.lock().clone();
    TurnRecord {
        response: json!(response),
        events,
        asked: provider.asked(),
        ran,
        places: runner.places.lock().clone(),
    }
}

fn code(code: &str) -> String {
    json!({"code": code}).to_string()
}

#[tokio::test]
async fn code_is_shown_as_it_is_written_runs_and_is_answered() {
    let first = ScriptedAnswer::new().reasoning("hm").text("Let me see.").call(
        "c1",
        "code_interpreter",
        &code("print('one')"),
    );
    let played = play(&json!({}), vec![first, ScriptedAnswer::new().text("It is one.")]).await;
    assert_eq!(
        played.names()[8..],
        [
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.code_interpreter_call.in_progress",
            "response.code_interpreter_call_code.delta",
            "response.code_interpreter_call_code.delta",
            "response.code_interpreter_call_code.done",
            "response.code_interpreter_call.interpreting",
            "response.code_interpreter_call.completed",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let call = &played.response["output"][2];
    assert_eq!(call["code"], "print('one')");
    assert_eq!(
        call["outputs"],
        json!([{"type": "logs", "logs": "ran print('one')"}])
    );
    assert_eq!(played.response["output"][3]["content"][0]["text"], "It is one.");
    assert_eq!(played.results(), ["ran print('one')"]);
    assert_eq!(
        played
            .ran
            .iter()
            .map(|code| (code.code(), code.requirements().len()))
            .collect::<Vec<_>>(),
        [("print('one')", 0)]
    );
    // Both answers' tokens.
    assert_eq!(played.response["usage"]["output_tokens"], 6);
}

#[tokio::test]
async fn outputs_are_null_unless_they_are_asked_for() {
    let first = ScriptedAnswer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(
        &json!({"include": []}),
        vec![first, ScriptedAnswer::new().text("ok")],
    )
    .await;
    assert_eq!(played.response["output"][0]["outputs"], Value::Null);
    assert_eq!(played.results(), ["ran 1"]);
}

#[tokio::test]
async fn a_function_of_the_client_ends_the_turn_with_its_call() {
    let both = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("1"))
        .call("c2", "get_weather", "{\"at\": 1}");
    let played = play(&json!({}), vec![both]).await;
    assert_eq!(played.response["status"], "completed");
    assert_eq!(played.response["output"][0]["status"], "completed");
    let call = &played.response["output"][1];
    assert_eq!(
        (&call["type"], &call["call_id"]),
        (&json!("function_call"), &json!("c2"))
    );
    assert_eq!(call["arguments"], "{\"at\": 1}");
    assert_eq!(played.ran.len(), 1);
}

#[tokio::test]
async fn arguments_that_are_broken_are_a_result_that_the_model_can_repair() {
    for (arguments, why) in [
        ("{\"code\": \"1", "before the JSON object is complete"),
        ("{\"code\": 1}", "is not a string"),
        ("", "the arguments lack `code`"),
        ("{\"code\": \" \\n\"}", "`code` is empty"),
        (
            "{\"code\": \"1\", \"requirements\": \"numpy\"}",
            "an array of strings",
        ),
    ] {
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", arguments),
            ScriptedAnswer::new().text("sorry"),
        ];
        let played = play(&json!({}), answers).await;
        assert_eq!(played.response["output"][0]["status"], "failed");
        assert_eq!(played.response["status"], "completed");
        let result = played.results()[0].as_str().unwrap().to_owned();
        assert!(
            result.starts_with("The code was not run: ") && result.contains(why),
            "{result}"
        );
        assert!(played.ran.is_empty());
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_a_result_too() {
    let answers = || {
        vec![
            ScriptedAnswer::new().call("c1", "browse", "{}"),
            ScriptedAnswer::new().text("sorry"),
        ]
    };
    let played = play(&json!({}), answers()).await;
    assert_eq!(played.results(), ["There is no tool named `browse`."]);
    assert_eq!(played.response["output"].as_array().unwrap().len(), 1);
    // The interpreter, where the request does not have it.
    let first = ScriptedAnswer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(
        &json!({"tools": []}),
        vec![first, ScriptedAnswer::new().text("sorry")],
    )
    .await;
    assert_eq!(played.results(), ["There is no tool named `code_interpreter`."]);
    assert!(played.ran.is_empty());
}

#[tokio::test]
async fn stopped_code_is_incomplete_and_the_turn_continues() {
    let first = ScriptedAnswer::new().call("c1", "code_interpreter", &code("slow"));
    let played = play(&json!({}), vec![first, ScriptedAnswer::new().text("too slow")]).await;
    assert_eq!(played.response["output"][0]["status"], "incomplete");
    assert!(
        !played
            .names()
            .contains(&"response.code_interpreter_call.completed")
    );
    assert_eq!(played.response["status"], "completed");
}

#[tokio::test]
async fn calls_beyond_the_most_are_not_run() {
    let two = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("1"))
        .call("c2", "code_interpreter", &code("2"));
    let played = play(
        &json!({"max_tool_calls": 1}),
        vec![two, ScriptedAnswer::new().text("ok")],
    )
    .await;
    assert_eq!(played.ran.len(), 1);
    assert_eq!(played.results()[0], "ran 1");
    assert!(
        played.results()[1]
            .as_str()
            .unwrap()
            .contains("no calls are left")
    );
}

#[tokio::test]
async fn calls_of_one_step_run_side_by_side_each_in_a_container_of_its_own() {
    // Each ends only when the other runs, too.
    let two = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("meet"))
        .call("c2", "code_interpreter", &code("meet"));
    let again = ScriptedAnswer::new().call("c3", "code_interpreter", &code("3"));
    let played = play(&json!({}), vec![two, again, ScriptedAnswer::new().text("ok")]).await;
    assert_eq!(played.places, ["cntr_1", "cntr_2", "cntr_1"]);
    let output = played.response["output"].as_array().unwrap();
    let told: Vec<_> = output[..3]
        .iter()
        .map(|item| (&item["container_id"], &item["status"]))
        .collect();
    let done = json!("completed");
    assert_eq!(
        told,
        [
            (&json!("cntr_1"), &done),
            (&json!("cntr_2"), &done),
            (&json!("cntr_1"), &done)
        ]
    );
    let calls = json!(played.asked[1].items);
    let answered: Vec<_> = calls.as_array().unwrap()[3..]
        .iter()
        .map(|item| &item["call_id"])
        .collect();
    assert_eq!(answered, ["c1", "c2"]);
}

#[tokio::test]
async fn calls_of_one_container_run_one_after_the_other() {
    let three = ["1", "2", "3"]
        .iter()
        .fold(ScriptedAnswer::new(), |answer, number| {
            answer.call(number, "code_interpreter", &code(number))
        });
    let answers = vec![three, ScriptedAnswer::new().text("ok")];
    let played = play_in(Echo::new(true), &json!({}), answers).await;
    let ran: Vec<_> = played.ran.iter().map(ToolsetCall::code).collect();
    assert_eq!(ran, ["1", "2", "3"]);
    assert_eq!(played.places, ["cntr_1"; 3]);
    // One is told to run only when the one before has ended.
    let steps = played
        .names()
        .into_iter()
        .filter_map(|name| name.strip_prefix("response.code_interpreter_call."));
    let steps: Vec<_> = steps.filter(|step| *step != "in_progress").collect();
    assert_eq!(steps, ["interpreting", "completed"].repeat(3));
}

#[tokio::test]
async fn files_are_cited_where_a_text_names_them_and_else_at_the_end_of_the_answer() {
    let first = ScriptedAnswer::new().call("c1", "code_interpreter", &code("make a.csv"));
    let second =
        ScriptedAnswer::new()
            .text("I have a.csv.")
            .call("c2", "code_interpreter", &code("make b.png"));
    let played = play(
        &json!({}),
        vec![first, second, ScriptedAnswer::new().text("Déjà vu")],
    )
    .await;
    let annotations = |item: usize| &played.response["output"][item]["content"][0]["annotations"];
    let citation = |file: &str, from: usize, to: usize| {
        json!([{
            "type": "container_file_citation", "container_id": "cntr_1", "file_id": format!("cfile_{file}"),
            "filename": file, "start_index": from, "end_index": to,
        }])
    };
    assert_eq!(*annotations(1), citation("a.csv", 7, 12));
    assert_eq!(*annotations(3), citation("b.png", 7, 7));
    let names = played.names();
    let at = names
        .iter()
        .position(|name| *name == "response.output_text.annotation.added")
        .unwrap();
    assert_eq!(names[at + 1], "response.output_text.done");
}

#[tokio::test]
async fn the_model_receives_the_list_of_files() {
    let played = play(&json!({}), vec![ScriptedAnswer::new().text("ok")]).await;
    let description = played.asked[0].tools[0].description.clone().unwrap();
    assert!(
        description.ends_with("Files that are there: `/mnt/data/in.csv`."),
        "{description}"
    );
}

#[tokio::test]
async fn a_model_that_never_answers_comes_to_an_end() {
    let again = || ScriptedAnswer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(&json!({}), vec![again(), again(), again(), again()]).await;
    assert_eq!(played.response["status"], "incomplete");
    assert_eq!(played.response["incomplete_details"]["reason"], "max_steps");
    assert_eq!(played.asked.len(), 3);
}

#[tokio::test]
async fn a_provider_that_fails_fails_the_response_and_leaves_no_item_open() {
    let half = ScriptedAnswer::new()
        .text("half")
        .call("c1", "code_interpreter", "{\"code\": \"1")
        .fails(ProviderError::Cut);
    let played = play(&json!({}), vec![half]).await;
    assert_eq!(played.response["status"], "failed");
    assert_eq!(played.response["error"]["code"], "server_error");
    assert_eq!(played.response["output"][1]["status"], "incomplete");
    assert_eq!(
        played.names()[played.events.len() - 2..],
        ["error", "response.failed"]
    );
    // Before anything was said.
    let played = play(&json!({}), Vec::new()).await;
    assert_eq!(played.response["status"], "failed");
    assert_eq!(played.response["usage"], Value::Null);
}

#[tokio::test]
async fn a_choice_that_forces_a_tool_holds_for_the_first_step() {
    let first = ScriptedAnswer::new().call("c1", "code_interpreter", &code("1"));
    let answers = vec![first, ScriptedAnswer::new().text("ok")];
    let played = play(&json!({"tool_choice": {"type": "code_interpreter"}}), answers).await;
    let choices: Vec<_> = played
        .asked
        .iter()
        .map(|asked| json!(asked.tool_choice))
        .collect();
    assert_eq!(choices, [json!({"type": "code_interpreter"}), json!("auto")]);
    assert_eq!(played.asked[0].tools[0].name, "code_interpreter");
}

#[tokio::test]
async fn a_client_that_is_gone_stops_the_code() {
    let waits = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("wait"))
        .call("c2", "code_interpreter", &code("wait"));
    let provider = ScriptedProvider::new([waits]);
    let runner = Arc::new(Echo::new(false));
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let turn = Turn::new(Arc::new(provider), Arc::new(Echoes(Arc::clone(&runner))));
    let (sender, mut receiver) = mpsc::channel(1);
    let leaving = async move {
        let mut running = 0;
        while let Some(event) = receiver.recv().await {
            running += usize::from(json!(event)["type"] == "response.code_interpreter_call.interpreting");
            if running == 2 {
                break;
            }
        }
    };
    let (response, ()) = tokio::join!(turn.run(&request, response, Vec::new(), sender), leaving);
    assert_eq!(response.incomplete_details.unwrap().reason, "client_gone");
    let started = runner.ran.lock().len();
    assert_eq!(runner.stops.load(Ordering::SeqCst), started);
    assert!(started >= 1);
}

#[tokio::test]
async fn a_server_that_ends_fails_the_response_and_stops_the_code() {
    let provider =
        ScriptedProvider::new([ScriptedAnswer::new().call("c1", "code_interpreter", &code("wait"))]);
    let runner = Arc::new(Echo::new(true));
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let ending = tokio_util::sync::CancellationToken::new();
    let turn = Turn::new(Arc::new(provider), Arc::new(Echoes(Arc::clone(&runner)))).until(ending.clone());
    let (sender, mut receiver) = mpsc::channel(1);
    let reading = async move {
        let mut last = String::new();
        while let Some(event) = receiver.recv().await {
            last = json!(event)["type"].as_str().unwrap().to_owned();
            if last == "response.code_interpreter_call.interpreting" {
                ending.cancel();
            }
        }
        last
    };
    let run = async {
        let response = turn.run(&request, response, Vec::new(), sender).await;
        drop(turn);
        response
    };
    let (response, last) = tokio::join!(run, reading);
    assert_eq!(last, "response.failed");
    let error = response.error.unwrap();
    assert_eq!(error.code, "server_error");
    assert!(
        error.message.starts_with("the gateway was stopped"),
        "{}",
        error.message
    );
    assert_eq!(runner.stops.load(Ordering::SeqCst), 1);
}
