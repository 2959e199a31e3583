//! Turns with scripted models and a runner that answers as it is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Code, Ran, Runner, Turn};
use crate::provider::scripted::{Answer, Scripted};
use crate::provider::{ModelRequest, Provider, ProviderError};
use crate::wire::order::Order;
use crate::wire::{Event, Ids, InterpreterOutput, ItemStatus, Output, Request, Response};

/// Says back the code that it gets; code that says `wait` never ends.
#[derive(Debug, Default)]
struct Echo {
    ran: Mutex<Vec<Code>>,
    stops: AtomicUsize,
}

impl Runner for Echo {
    fn container(&self) -> &'static str {
        "cntr_1"
    }

    fn run(&self, code: Code) -> BoxFuture<'_, Ran> {
        self.ran.lock().unwrap().push(code.clone());
        Box::pin(async move {
            if code.code == "wait" {
                std::future::pending::<()>().await;
            }
            let logs = format!("ran {}", code.code);
            let incomplete = code.code == "slow";
            Ran {
                status: if incomplete {
                    ItemStatus::Incomplete
                } else {
                    ItemStatus::Completed
                },
                outputs: vec![InterpreterOutput::Logs { logs: logs.clone() }],
                result: Output::Text(logs),
            }
        })
    }

    fn stop(&self) {
        self.stops.fetch_add(1, Ordering::SeqCst);
    }
}

/// What came of a turn.
struct Played {
    response: Value,
    events: Vec<Value>,
    asked: Vec<ModelRequest>,
    ran: Vec<Code>,
}

impl Played {
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

fn request(change: &Value) -> Request {
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
    Request::parse(body.to_string().as_bytes(), &mut Ids::counted()).unwrap()
}

async fn play(change: &Value, answers: Vec<Answer>) -> Played {
    let provider = Arc::new(Scripted::new(answers));
    let runner = Arc::new(Echo::default());
    let request = request(change);
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let turn = Turn::new(
        Arc::clone(&provider) as Arc<dyn Provider>,
        Arc::clone(&runner) as Arc<dyn Runner>,
    )
    .steps(3)
    .ids(Ids::counted());
    let (sender, mut receiver) = mpsc::channel(1);
    let reading = async {
        let mut events: Vec<Event> = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let (response, events) = tokio::join!(turn.run(&request, response, Vec::new(), sender), reading);
    let events: Vec<_> = events.iter().map(|event| json!(event)).collect();
    Order::check(&events).unwrap();
    assert_eq!(events.last().unwrap()["response"], json!(response));
    let ran = runner.ran.lock().unwrap().clone();
    Played {
        response: json!(response),
        events,
        asked: provider.asked(),
        ran,
    }
}

fn code(code: &str) -> String {
    json!({"code": code}).to_string()
}

#[tokio::test]
async fn code_is_shown_as_it_is_written_runs_and_is_answered() {
    let first = Answer::new().reasoning("hm").text("Let me see.").call(
        "c1",
        "code_interpreter",
        &code("print('one')"),
    );
    let played = play(&json!({}), vec![first, Answer::new().text("It is one.")]).await;
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
        played.ran,
        [Code {
            code: "print('one')".to_owned(),
            requirements: Vec::new()
        }]
    );
    // Both answers' tokens.
    assert_eq!(played.response["usage"]["output_tokens"], 6);
}

#[tokio::test]
async fn outputs_are_null_unless_they_are_asked_for() {
    let first = Answer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(&json!({"include": []}), vec![first, Answer::new().text("ok")]).await;
    assert_eq!(played.response["output"][0]["outputs"], Value::Null);
    assert_eq!(played.results(), ["ran 1"]);
}

#[tokio::test]
async fn a_function_of_the_client_ends_the_turn_with_its_call() {
    let both =
        Answer::new()
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
        ("{\"code\": \"1", "before the JSON object does"),
        ("{\"code\": 1}", "is not a string"),
        ("", "`code` is missing"),
        (
            "{\"code\": \"1\", \"requirements\": \"numpy\"}",
            "a list of strings",
        ),
    ] {
        let answers = vec![
            Answer::new().call("c1", "code_interpreter", arguments),
            Answer::new().text("sorry"),
        ];
        let played = play(&json!({}), answers).await;
        assert_eq!(played.response["output"][0]["status"], "failed");
        assert_eq!(played.response["status"], "completed");
        let result = played.results()[0].as_str().unwrap().to_owned();
        assert!(
            result.starts_with("The code was not run: ") && result.contains(why),
            "{result}"
        );
        assert_eq!(played.ran, []);
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_a_result_too() {
    let answers = || {
        vec![
            Answer::new().call("c1", "browse", "{}"),
            Answer::new().text("sorry"),
        ]
    };
    let played = play(&json!({}), answers()).await;
    assert_eq!(played.results(), ["There is no tool named `browse`."]);
    assert_eq!(played.response["output"].as_array().unwrap().len(), 1);
    // The interpreter, where the request does not have it.
    let first = Answer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(&json!({"tools": []}), vec![first, Answer::new().text("sorry")]).await;
    assert_eq!(played.results(), ["There is no tool named `code_interpreter`."]);
    assert_eq!(played.ran, []);
}

#[tokio::test]
async fn code_that_was_stopped_is_incomplete_and_the_turn_goes_on() {
    let first = Answer::new().call("c1", "code_interpreter", &code("slow"));
    let played = play(&json!({}), vec![first, Answer::new().text("too slow")]).await;
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
    let two =
        Answer::new()
            .call("c1", "code_interpreter", &code("1"))
            .call("c2", "code_interpreter", &code("2"));
    let played = play(&json!({"max_tool_calls": 1}), vec![two, Answer::new().text("ok")]).await;
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
async fn a_model_that_never_answers_comes_to_an_end() {
    let again = || Answer::new().call("c1", "code_interpreter", &code("1"));
    let played = play(&json!({}), vec![again(), again(), again(), again()]).await;
    assert_eq!(played.response["status"], "incomplete");
    assert_eq!(played.response["incomplete_details"]["reason"], "max_steps");
    assert_eq!(played.asked.len(), 3);
}

#[tokio::test]
async fn a_provider_that_fails_fails_the_response_and_leaves_no_item_open() {
    let half = Answer::new()
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
    let first = Answer::new().call("c1", "code_interpreter", &code("1"));
    let answers = vec![first, Answer::new().text("ok")];
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
    let provider = Scripted::new([Answer::new().call("c1", "code_interpreter", &code("wait"))]);
    let runner = Arc::new(Echo::default());
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let turn = Turn::new(Arc::new(provider), Arc::clone(&runner) as Arc<dyn Runner>);
    let (sender, mut receiver) = mpsc::channel(1);
    let leaving = async move {
        while let Some(event) = receiver.recv().await {
            if json!(event)["type"] == "response.code_interpreter_call.interpreting" {
                break;
            }
        }
    };
    let (response, ()) = tokio::join!(turn.run(&request, response, Vec::new(), sender), leaving);
    assert_eq!(response.incomplete_details.unwrap().reason, "client_gone");
    assert_eq!(runner.stops.load(Ordering::SeqCst), 1);
    assert_eq!(runner.ran.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_that_ends_fails_the_response_and_stops_the_code() {
    let provider = Scripted::new([Answer::new().call("c1", "code_interpreter", &code("wait"))]);
    let runner = Arc::new(Echo::default());
    let request = request(&json!({}));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let ending = tokio_util::sync::CancellationToken::new();
    let turn = Turn::new(Arc::new(provider), Arc::clone(&runner) as Arc<dyn Runner>).until(ending.clone());
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
