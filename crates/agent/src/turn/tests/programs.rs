//! Turns with programs, whose runs report what the test says.

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Echo, TurnRecord, code, play_in};
use crate::provider::scripted::ScriptedAnswer;

fn tools() -> Value {
    json!([
        {"type": "programmatic_tool_calling"},
        {"type": "function", "name": "price", "description": "Returns a price.",
         "parameters": {"type": "object"}, "output_schema": {"type": "object", "title": "Price"},
         "allowed_callers": ["programmatic"]},
        {"type": "namespace", "name": "shop", "description": "The shop.", "tools": [
            {"type": "function", "name": "stock", "allowed_callers": ["direct", "programmatic"]},
        ]},
    ])
}

fn runs(id: &str, program: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "programmatic_tool_calling", &code(program))
}

fn report(state: &str, text: &str, calls: &[(&str, &str)]) -> Value {
    let calls = calls
        .iter()
        .map(|(name, arguments)| json!({"name": name, "arguments": arguments}));
    let error = (state == "failed").then_some("TypeError: no");
    json!({"state": state, "text": text, "images": [], "error": error, "calls": calls.collect::<Vec<_>>()})
}

async fn play(reports: Vec<Value>, input: Value, answers: Vec<ScriptedAnswer>) -> TurnRecord {
    let echo = Echo {
        reports: Mutex::new(reports.into()),
        ..Echo::new(true)
    };
    play_in(echo, &json!({"tools": tools(), "input": input}), answers).await
}

fn kinds(played: &TurnRecord) -> Vec<&str> {
    let output = played.response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

/// A response as a client sends it back, with outputs of the calls.
fn answered(played: &TurnRecord) -> Value {
    let output = played.response["output"].as_array().unwrap().clone();
    let calls = output.iter().filter(|item| item["type"] == "function_call");
    let outputs: Vec<_> = calls
        .map(|call| {
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "{\"eur\":2}",
                   "caller": call["caller"]})
        })
        .collect();
    json!(
        [json!({"role": "user", "content": "go"})]
            .into_iter()
            .chain(output)
            .chain(outputs)
            .collect::<Vec<_>>()
    )
}

#[tokio::test]
async fn a_program_waits_for_its_calls_and_runs_again_with_their_outputs() {
    let calls = [("price", "{\"sku\":\"A\"}"), ("shop__stock", "{}")];
    let first = play(
        vec![report("waits", "", &calls)],
        json!("go"),
        vec![runs("c1", "text(1)")],
    )
    .await;
    assert_eq!(first.response["status"], "completed");
    assert_eq!(kinds(&first), ["program", "function_call", "function_call"]);
    let [program, price, stock] = [0, 1, 2].map(|at| &first.response["output"][at]);
    assert_eq!(
        (&program["call_id"], &program["code"]),
        (&json!("c1"), &json!("text(1)"))
    );
    assert!(program.get("status").is_none(), "{program}");
    assert_eq!(price["caller"], json!({"type": "program", "caller_id": "c1"}));
    assert_eq!(price["arguments"], "{\"sku\":\"A\"}");
    assert_eq!(
        (&stock["namespace"], &stock["name"]),
        (&json!("shop"), &json!("stock"))
    );
    let about = first.asked[0].tools[0].description.clone().unwrap();
    for line in [
        "- `await tools.price({…})`: Returns a price.",
        "Returns: {",
        "tools.shop__stock",
    ] {
        assert!(about.contains(line), "{about}");
    }
    let offered: Vec<_> = first.asked[0].tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["programmatic_tool_calling", "shop__stock"]);

    let answers = vec![ScriptedAnswer::new().text("It is 2.")];
    let second = play(vec![report("ended", "2", &[])], answered(&first), answers).await;
    assert_eq!(kinds(&second), ["program_output", "message"]);
    let output = &second.response["output"][0];
    assert_eq!(
        (&output["result"], &output["status"]),
        (&json!("2"), &json!("completed"))
    );
    assert_eq!(output["call_id"], "c1");
    let ran = &second.ran[0].arguments;
    assert_eq!(ran["started_ms"], first.ran[0].arguments["started_ms"]);
    assert_eq!(
        ran["calls"],
        json!([
            {"name": "price", "arguments": "{\"sku\":\"A\"}", "output": "{\"eur\":2}"},
            {"name": "shop__stock", "arguments": "{}", "output": "{\"eur\":2}"},
        ])
    );
    // The model knows one call with one result.
    let asked = json!(second.asked[0].items);
    let known: Vec<_> = asked
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["type"])
        .collect();
    assert_eq!(known, ["message", "function_call", "function_call_output"]);
    assert_eq!(second.results(), ["2"]);
}

#[tokio::test]
async fn a_program_that_fails_or_cannot_run_has_the_reason_for_the_model() {
    let answers = vec![
        runs("c1", "text('a'); null.x"),
        runs("c1", "text(2)"),
        ScriptedAnswer::new().text("ok"),
    ];
    // The second run has no report, as in a sandbox that failed.
    let played = play(vec![report("failed", "a", &[])], json!("go"), answers).await;
    assert_eq!(
        kinds(&played),
        [
            "program",
            "program_output",
            "program",
            "program_output",
            "message"
        ]
    );
    assert_eq!(played.response["output"][1]["status"], "incomplete");
    assert_eq!(
        played.results(),
        ["a\n[error] TypeError: no", "[error] ran text(2)"]
    );
    // Call ids that a model repeats are replaced.
    let ids = [0, 2].map(|at| &played.response["output"][at]["call_id"]);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_program_without_code_goes_back_to_the_model() {
    let answers = vec![runs("c1", " "), ScriptedAnswer::new().text("ok")];
    let played = play(Vec::new(), json!("go"), answers).await;
    assert_eq!(kinds(&played), ["message"]);
    let told = played.results()[0].as_str().unwrap().to_owned();
    assert!(told.contains("send the JavaScript to run"), "{told}");
}

#[tokio::test]
async fn a_function_that_a_waiting_program_called_must_still_be_there() {
    let first = play(
        vec![report("waits", "", &[("price", "{}")])],
        json!("go"),
        vec![runs("c1", "text(1)")],
    )
    .await;
    let request = json!({"tools": [{"type": "programmatic_tool_calling"}], "input": answered(&first)});
    let played = play_in(Echo::new(true), &request, vec![ScriptedAnswer::new().text("ok")]).await;
    assert!(played.ran.is_empty());
    let told = played.results()[0].as_str().unwrap().to_owned();
    assert!(told.contains("programs cannot call `price`"), "{told}");
}

#[tokio::test]
async fn a_deferred_function_is_described_to_programs_once_it_was_found() {
    let request = json!({"input": "go", "tools": [
        {"type": "programmatic_tool_calling"},
        {"type": "function", "name": "stock", "description": "Returns a stock.", "defer_loading": true,
         "parameters": {"type": "object"}, "allowed_callers": ["direct", "programmatic"]},
        {"type": "tool_search"},
    ]});
    let answers = vec![
        ScriptedAnswer::new().call("c1", "tool_search", "{\"query\": \"stock\"}"),
        ScriptedAnswer::new().text("ok"),
    ];
    let played = play_in(Echo::new(true), &request, answers).await;
    let about = |step: usize| played.asked[step].tools[0].description.clone().unwrap();
    assert!(!about(0).contains("tools.stock"), "{}", about(0));
    assert!(about(1).contains("tools.stock"), "{}", about(1));
}
