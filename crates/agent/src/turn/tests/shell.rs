//! Turns with commands of a shell: in containers, and at the client.

use serde_json::{Value, json};

use super::{Echo, TurnRecord, code, play, play_in};
use crate::provider::scripted::ScriptedAnswer;

fn hosted() -> Value {
    json!({"type": "shell", "environment": {"type": "container_auto"}})
}

fn call(id: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "shell", "{\"commands\": [\"ls\"]}")
}

fn kinds(played: &TurnRecord) -> Vec<&str> {
    let output = played.response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn commands_that_a_place_cannot_run_have_its_reason() {
    let answers = vec![call("c1"), ScriptedAnswer::new().text("ok")];
    let played = play(&json!({"tools": [hosted()]}), answers).await;
    assert_eq!(kinds(&played), ["shell_call", "shell_call_output", "message"]);
    assert_eq!(played.ran[0].arguments, json!({"commands": ["ls"]}));
    let output = &played.response["output"][1]["output"][0];
    assert_eq!(output["stderr"], "ran ");
    assert_eq!(output["outcome"], json!({"type": "exit", "exit_code": 125}));
    assert_eq!(played.results(), ["ran "]);
}

#[tokio::test]
async fn a_model_is_told_the_hosts_that_commands_reach() {
    let echo = Echo {
        network: Some("Code reaches `a.example`."),
        ..Echo::new(true)
    };
    let answers = vec![ScriptedAnswer::new().text("ok")];
    let played = play_in(echo, &json!({"tools": [hosted()]}), answers).await;
    let description = played.asked[0].tools[0].description.clone().unwrap();
    assert!(
        description.contains(" Code reaches `a.example`. "),
        "{description}"
    );
}

#[tokio::test]
async fn a_call_id_that_a_model_repeats_is_replaced() {
    let answers = vec![call("c1"), call("c1"), ScriptedAnswer::new().text("ok")];
    let played = play(&json!({"tools": [hosted()]}), answers).await;
    let ids = [0, 2].map(|at| played.response["output"][at]["call_id"].as_str().unwrap());
    assert_eq!(ids[0], "c1");
    assert_ne!(ids[1], "c1");
    assert_eq!(played.response["output"][3]["call_id"], ids[1]);
    assert_eq!(played.results().len(), 2);
}

#[tokio::test]
async fn commands_do_not_share_their_call_id_with_earlier_code() {
    let answers = vec![
        ScriptedAnswer::new().call("call_0", "code_interpreter", &code("1")),
        call("call_0"),
        ScriptedAnswer::new().text("ok"),
    ];
    let tools = json!([{"type": "code_interpreter", "container": {"type": "auto"}}, hosted()]);
    let played = play(&json!({"tools": tools}), answers).await;
    assert_eq!(
        kinds(&played),
        [
            "code_interpreter_call",
            "shell_call",
            "shell_call_output",
            "message"
        ]
    );
    let id = &played.response["output"][1]["call_id"];
    assert_ne!(*id, "call_0");
    assert_eq!(played.response["output"][2]["call_id"], *id);
    let read = json!(played.asked[2].items);
    let read = read.as_array().unwrap().iter();
    let ids: Vec<_> = read.filter_map(|item| item["call_id"].as_str()).collect();
    assert_eq!(ids[..2], ["call_0"; 2]);
    assert_eq!(ids[2..], [id.as_str().unwrap(); 2]);
}

#[tokio::test]
async fn commands_count_as_calls_of_hosted_tools() {
    let answers = vec![call("c1"), call("c2"), ScriptedAnswer::new().text("ok")];
    let played = play(&json!({"tools": [hosted()], "max_tool_calls": 1}), answers).await;
    assert_eq!(kinds(&played), ["shell_call", "shell_call_output", "message"]);
    let last = played.results()[1].clone();
    assert!(last.as_str().unwrap().contains("no calls are left"), "{last}");
}

#[tokio::test]
async fn code_and_local_commands_of_a_step_are_both_served() {
    let answer = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("1"))
        .call("c2", "shell", "{\"commands\": [\"ls\"]}")
        .call("c3", "shell", "{\"commands\": 1}");
    let tools = json!([
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "shell", "environment": {"type": "local"}},
    ]);
    let played = play(&json!({"tools": tools}), vec![answer]).await;
    assert_eq!(kinds(&played), ["code_interpreter_call", "shell_call"]);
    assert_eq!(
        played.response["output"][1]["environment"],
        json!({"type": "local"})
    );
    assert_eq!(played.response["status"], "completed");
    assert_eq!(played.ran.len(), 1);
}
