//! Turns with functions of the client in namespaces: the model knows them by flat names, the client
//! by its own.

use serde_json::{Value, json};

use super::{TurnRecord, code, play};
use crate::provider::scripted::ScriptedAnswer;

fn tools() -> Value {
    let function = |name: &str| json!({"type": "function", "name": name});
    json!([
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "namespace", "name": "crm", "description": "Customers.",
            "tools": [function("find"), function("code_interpreter")]},
        function("crm__find"),
    ])
}

fn offered(played: &TurnRecord, step: usize) -> Vec<&str> {
    let tools = played.asked[step].tools.iter();
    tools.map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_call_in_a_namespace_is_handed_to_the_client_under_its_own_name() {
    let answer = ScriptedAnswer::new()
        .call("c1", "crm__find_2", "{\"q\": \"ann\"}")
        .call("c2", "crm__find", "{}");
    let played = play(&json!({"tools": tools()}), vec![answer]).await;
    assert_eq!(
        offered(&played, 0),
        [
            "code_interpreter",
            "crm__find_2",
            "crm__code_interpreter",
            "crm__find"
        ]
    );
    let output = played.response["output"].as_array().unwrap();
    assert_eq!(output.len(), 2);
    assert_eq!(
        (
            &output[0]["namespace"],
            &output[0]["name"],
            &output[0]["arguments"]
        ),
        (&json!("crm"), &json!("find"), &json!("{\"q\": \"ann\"}"))
    );
    assert_eq!(
        (output[1].get("namespace"), &output[1]["name"]),
        (None, &json!("crm__find"))
    );
    // A client may begin its call when it is told of it first.
    let added = played
        .events
        .iter()
        .find(|event| event["type"] == "response.output_item.added")
        .unwrap();
    assert_eq!(
        (&added["item"]["namespace"], &added["item"]["name"]),
        (&json!("crm"), &json!("find"))
    );
    assert_eq!(played.response["status"], "completed");
}

#[tokio::test]
async fn a_call_that_is_sent_back_has_the_name_that_the_model_knows() {
    let call = |id: &str, namespace: Value| {
        json!({"type": "function_call", "call_id": id,
        "name": "find", "namespace": namespace, "arguments": "{}"})
    };
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "ann"});
    let input = json!([
        {"role": "user", "content": "who?"},
        call("c1", json!("crm")), output("c1"), call("c2", json!("gone")), output("c2"),
    ]);
    let change = json!({"tools": tools(), "input": input});
    let played = play(&change, vec![ScriptedAnswer::new().text("Ann.")]).await;
    let items = json!(played.asked[0].items);
    let names: Vec<_> = [1, 3]
        .map(|at| (items[at]["name"].clone(), items[at].get("namespace").cloned()))
        .into();
    assert_eq!(names, [(json!("crm__find_2"), None), (json!("gone__find"), None)]);
}

#[tokio::test]
async fn a_choice_of_a_function_in_a_namespace_has_the_name_that_the_model_knows() {
    let function = json!({"type": "function", "namespace": "crm", "name": "find"});
    let chosen = |choice: Value| {
        let tools = tools();
        async move {
            let change = json!({"tools": tools, "tool_choice": choice});
            let played = play(&change, vec![ScriptedAnswer::new().text("ok")]).await;
            // What the client is told is what it asked for.
            assert_eq!(played.response["tool_choice"], choice);
            json!(played.asked[0].tool_choice)
        }
    };
    let known = json!({"type": "function", "name": "crm__find_2"});
    assert_eq!(chosen(function.clone()).await, known);
    let allowed = |function: &Value| {
        json!({"type": "allowed_tools", "mode": "auto",
        "tools": [function, {"type": "code_interpreter"}]})
    };
    assert_eq!(chosen(allowed(&function)).await, allowed(&known));
}

#[tokio::test]
async fn code_runs_beside_a_call_in_a_namespace_that_has_the_interpreters_name() {
    let answer = ScriptedAnswer::new()
        .call("c1", "code_interpreter", &code("1"))
        .call("c2", "crm__code_interpreter", "{}");
    let played = play(&json!({"tools": tools()}), vec![answer]).await;
    assert_eq!(played.ran.len(), 1);
    let output = played.response["output"].as_array().unwrap();
    let kinds: Vec<_> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["code_interpreter_call", "function_call"]);
    assert_eq!(
        (&output[1]["namespace"], &output[1]["name"]),
        (&json!("crm"), &json!("code_interpreter"))
    );
}
