//! Turns with deferred tools, which the model has to find before it can call them.

use serde_json::{Value, json};

use super::{TurnRecord, play};
use crate::provider::scripted::ScriptedAnswer;

fn deferred(name: &str, description: &str) -> Value {
    json!({"type": "function", "name": name, "description": description, "strict": null,
           "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}, "defer_loading": true})
}

fn crm() -> Value {
    json!({"type": "namespace", "name": "crm", "description": "Customers.", "tools": [
        deferred("find", "Finds a customer."),
        deferred("delete", "Deletes an account."),
        {"type": "custom", "name": "note", "description": "Writes a memo.", "format": {"type": "text"},
         "defer_loading": true},
    ]})
}

fn tools() -> Value {
    json!([
        {"type": "function", "name": "add", "parameters": {"type": "object"}},
        deferred("send_mail", "Sends a mail."),
        crm(),
        {"type": "tool_search"},
    ])
}

fn search(id: &str, query: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "tool_search", &json!({"query": query}).to_string())
}

fn done() -> ScriptedAnswer {
    ScriptedAnswer::new().text("done")
}

fn offered(played: &TurnRecord, step: usize) -> Vec<&str> {
    let tools = played.asked[step].tools.iter();
    tools.map(|tool| tool.name.as_str()).collect()
}

fn kinds(played: &TurnRecord) -> Vec<&str> {
    let output = played.response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tool_that_was_found_is_offered_and_called_in_its_namespace() {
    let call = ScriptedAnswer::new().call("c2", "crm__find", "{\"q\": \"Ada\"}");
    let played = play(
        &json!({"tools": tools()}),
        vec![search("c1", "find customer"), call],
    )
    .await;
    assert_eq!(offered(&played, 0), ["add", "tool_search"]);
    assert_eq!(offered(&played, 1)[..2], ["add", "tool_search"]);
    assert!(offered(&played, 1).contains(&"crm__find"));
    assert!(!offered(&played, 1).contains(&"send_mail"));
    let about = played.asked[0].tools[1].description.clone().unwrap();
    assert!(
        about.contains("\n- `send_mail`: Sends a mail.") && about.contains("\n- `crm` (3 tools): Customers."),
        "{about}"
    );
    assert_eq!(
        kinds(&played),
        ["tool_search_call", "tool_search_output", "function_call"]
    );
    let output = &played.response["output"];
    assert_eq!(
        (
            &output[0]["execution"],
            &output[0]["call_id"],
            &output[0]["arguments"]
        ),
        (&json!("server"), &Value::Null, &json!({"query": "find customer"}))
    );
    let found = &output[1]["tools"][0];
    assert_eq!(
        (&output[1]["call_id"], &found["name"]),
        (&Value::Null, &json!("crm"))
    );
    assert_eq!(found["tools"][0], crm()["tools"][0]);
    assert_eq!(
        (&output[2]["namespace"], &output[2]["name"]),
        (&json!("crm"), &json!("find"))
    );
    // The model reads what it has found.
    let told = played.results()[0].as_str().unwrap().to_owned();
    assert!(
        told.contains("\"name\":\"crm__find\"") && told.contains("\"q\"") && !told.contains("send_mail"),
        "{told}"
    );
}

#[tokio::test]
async fn a_search_without_a_match_or_with_wrong_arguments_is_explained() {
    let wrong = ScriptedAnswer::new().call("c2", "tool_search", "{\"query\": 1}");
    let played = play(
        &json!({"tools": tools()}),
        vec![search("c1", "translate"), wrong, done()],
    )
    .await;
    assert_eq!(
        kinds(&played),
        ["tool_search_call", "tool_search_output", "message"]
    );
    assert_eq!(played.response["output"][1]["tools"], json!([]));
    let results = played.results();
    assert!(
        results[0].as_str().unwrap().starts_with("No tool matches."),
        "{}",
        results[0]
    );
    assert!(
        results[1].as_str().unwrap().contains("`query` must be a string"),
        "{}",
        results[1]
    );
    assert_eq!(offered(&played, 2), ["add", "tool_search"]);
}

#[tokio::test]
async fn a_tool_that_is_not_loaded_cannot_be_called() {
    let call = ScriptedAnswer::new().call("c1", "send_mail", "{}");
    let played = play(&json!({"tools": tools()}), vec![call, done()]).await;
    assert_eq!(kinds(&played), ["message"]);
    let told = played.results()[0].clone();
    assert!(
        told.as_str().unwrap().contains("Find it with `tool_search`"),
        "{told}"
    );
}

#[tokio::test]
async fn the_number_of_tools_that_a_search_loads_is_bounded() {
    let many: Vec<_> = (0..30)
        .map(|at| deferred(&format!("mail_{at}"), "Sends a mail."))
        .collect();
    let mut tools = json!([{"type": "tool_search", "description": "Searches."}]);
    tools.as_array_mut().unwrap().extend(many);
    for (limit, count) in [(json!(null), 8), (json!(2), 2), (json!(1000), 20)] {
        let arguments = json!({"query": "mail", "limit": limit}).to_string();
        let search = ScriptedAnswer::new().call("c1", "tool_search", &arguments);
        let played = play(&json!({"tools": tools}), vec![search, done()]).await;
        let found = played.response["output"][1]["tools"].as_array().unwrap();
        assert_eq!(found.len(), count, "{limit}");
        assert_eq!(offered(&played, 1).len(), count + 1, "{limit}");
    }
}

#[tokio::test]
async fn a_search_of_the_client_ends_the_response_and_its_output_loads_tools() {
    let parameters = json!({"type": "object", "properties": {"goal": {"type": "string"}}});
    let tools = json!([{"type": "tool_search", "execution": "client", "description": "Finds.",
                        "parameters": parameters}, deferred("send_mail", "Sends a mail.")]);
    let call = ScriptedAnswer::new().call("c1", "tool_search", "{\"goal\": \"mail\"}");
    let played = play(&json!({"tools": tools}), vec![call]).await;
    let offered_first = &played.asked[0].tools[0];
    assert_eq!(json!(offered_first.parameters), parameters);
    assert_eq!(offered(&played, 0), ["tool_search"]);
    assert_eq!(kinds(&played), ["tool_search_call"]);
    let item = played.response["output"][0].clone();
    assert_eq!(
        (&item["execution"], &item["call_id"], &item["arguments"]),
        (&json!("client"), &json!("c1"), &json!({"goal": "mail"}))
    );
    let found = json!([crm(), deferred("send_mail", "Sends a mail.")]);
    let output = json!({"type": "tool_search_output", "call_id": "c1", "execution": "client",
                        "status": "completed", "tools": found});
    let input = json!([{"role": "user", "content": "go"}, item, output]);
    let memo = ScriptedAnswer::new().call("c2", "crm__note", "{\"input\": \"hi\"}");
    let played = play(&json!({"tools": tools, "input": input}), vec![memo]).await;
    let names = [
        "tool_search",
        "crm__find",
        "crm__delete",
        "crm__note",
        "send_mail",
    ];
    assert_eq!(offered(&played, 0), names);
    let call = &played.response["output"][0];
    assert_eq!(
        (&call["type"], &call["namespace"], &call["input"]),
        (&json!("custom_tool_call"), &json!("crm"), &json!("hi"))
    );
    // Without a search, nothing was loaded.
    let played = play(&json!({"tools": [], "input": input}), vec![done()]).await;
    assert_eq!(offered(&played, 0), [""; 0]);
}

#[tokio::test]
async fn items_of_an_earlier_search_load_its_tools_again() {
    let first = play(&json!({"tools": tools()}), vec![search("c1", "mail"), done()]).await;
    let mut input = vec![json!({"role": "user", "content": "go"})];
    input.extend(first.response["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"role": "user", "content": "and now?"}));
    let again = play(&json!({"tools": tools(), "input": input}), vec![done()]).await;
    assert_eq!(offered(&again, 0), ["add", "tool_search", "send_mail"]);
    let items = json!(again.asked[0].items);
    assert_eq!(
        (&items[1]["type"], &items[1]["name"], &items[1]["call_id"]),
        (
            &json!("function_call"),
            &json!("tool_search"),
            &items[2]["call_id"]
        )
    );
    // The output alone loads them, too; the model does not read half a pair.
    input.remove(1);
    let again = play(&json!({"tools": tools(), "input": input}), vec![done()]).await;
    assert_eq!(offered(&again, 0), ["add", "tool_search", "send_mail"]);
    assert_eq!(json!(again.asked[0].items)[1]["type"], "message");
}

#[tokio::test]
async fn a_found_function_with_the_name_of_a_hosted_tool_is_not_offered() {
    let input = json!([
        {"role": "user", "content": "go"},
        {"type": "tool_search_output", "execution": "server", "call_id": null, "status": "completed",
         "tools": [deferred("tool_search", "Searches."), deferred("send_mail", "Sends a mail.")]},
    ]);
    let played = play(&json!({"tools": tools(), "input": input}), vec![done()]).await;
    assert_eq!(offered(&played, 0), ["add", "tool_search", "send_mail"]);
}

#[tokio::test]
async fn a_choice_of_deferred_tools_can_be_served() {
    let chosen = json!({"type": "function", "name": "send_mail"});
    let forced = play(&json!({"tools": tools(), "tool_choice": chosen}), vec![done()]).await;
    assert_eq!(offered(&forced, 0), ["add", "tool_search", "send_mail"]);
    // Once, also if a search has found it before.
    let found = json!([
        {"role": "user", "content": "go"},
        {"type": "tool_search_output", "execution": "server", "call_id": null, "status": "completed",
         "tools": [deferred("send_mail", "Sends a mail.")]},
    ]);
    let body = json!({"tools": tools(), "input": found, "tool_choice": chosen});
    let forced = play(&body, vec![done()]).await;
    assert_eq!(offered(&forced, 0), ["add", "tool_search", "send_mail"]);
    let choice = json!({"type": "allowed_tools", "mode": "auto", "tools": [chosen]});
    let allowed = play(&json!({"tools": tools(), "tool_choice": choice}), vec![done()]).await;
    assert_eq!(
        json!(allowed.asked[0].tool_choice)["tools"],
        json!([chosen, {"type": "function", "name": "tool_search"}])
    );
}

#[tokio::test]
async fn tools_are_deferred_only_if_they_can_be_found() {
    let tools = json!([deferred("send_mail", "Sends a mail.")]);
    let played = play(&json!({"tools": tools}), vec![done()]).await;
    assert_eq!(offered(&played, 0), ["send_mail"]);
    // There is nothing to find.
    let tools = json!([{"type": "tool_search"}, {"type": "function", "name": "add"}]);
    let played = play(&json!({"tools": tools}), vec![done()]).await;
    assert_eq!(offered(&played, 0), ["add"]);
}
