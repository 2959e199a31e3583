//! Deferred tools that the model finds: with and without stored responses, here and at the client.

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{block_on, events, scripted, types};

fn tools() -> Value {
    let find = json!({"type": "function", "name": "find", "description": "Finds a customer.",
                      "parameters": {"type": "object"}, "strict": false, "defer_loading": true});
    json!([{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [find]},
           {"type": "tool_search"}])
}

fn search() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c1", "tool_search", "{\"query\": \"customer\"}")
}

fn call() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c2", "crm__find", "{}")
}

fn done() -> ScriptedAnswer {
    ScriptedAnswer::new().text("done")
}

fn output() -> Value {
    json!({"type": "function_call_output", "call_id": "c2", "output": "Ada"})
}

/// Names of the tools that the model was offered last.
fn offered(provider: &ScriptedProvider) -> Vec<String> {
    let asked = provider.asked();
    let tools = asked.last().unwrap().tools.iter();
    tools.map(|tool| tool.name.clone()).collect()
}

#[test]
fn a_found_tool_is_called_and_stays_loaded_in_a_stored_conversation() {
    block_on(async {
        let (server, provider) = scripted([search(), call(), done(), done()]).await;
        let stream = server.stream(json!({"input": "go", "tools": tools()})).await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        assert_eq!(
            types(&response["output"]),
            ["tool_search_call", "tool_search_output", "function_call"]
        );
        assert_eq!(response["output"][2]["namespace"], "crm");
        assert_eq!(response["tools"][0], tools()[0]);
        assert_eq!(
            response["tools"][1],
            json!({"type": "tool_search", "execution": "server"})
        );
        let path = format!("responses/{}", response["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.ok()["output"], response["output"]);
        let body = json!({"input": [output()], "tools": tools(), "previous_response_id": response["id"]});
        server.create(body).await.ok();
        assert_eq!(offered(&provider), ["tool_search", "crm__find"]);
        // By the ids of its items, too.
        let ids = response["output"].as_array().unwrap().iter();
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(ids.map(|item| json!({"type": "item_reference", "id": item["id"]})));
        input.push(output());
        server
            .create(json!({"input": input, "tools": tools()}))
            .await
            .ok();
        assert_eq!(offered(&provider), ["tool_search", "crm__find"]);
    });
}

#[test]
fn a_found_tool_stays_loaded_for_a_client_that_keeps_the_items() {
    block_on(async {
        let (server, provider) = scripted([search(), call(), done()]).await;
        let body = json!({"input": "go", "tools": tools(), "store": false});
        let first = server.create(body).await.ok();
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(first["output"].as_array().unwrap().iter().cloned());
        input.push(output());
        let body = json!({"input": input, "tools": tools(), "store": false});
        assert_eq!(server.create(body).await.ok()["status"], "completed");
        assert_eq!(offered(&provider), ["tool_search", "crm__find"]);
    });
}

#[test]
fn a_conversation_keeps_what_was_found() {
    block_on(async {
        let (server, provider) = scripted([search(), call(), done()]).await;
        let conversation = server.post("conversations", &json!({})).await.ok()["id"].clone();
        let ask = |input: Value| {
            server.create(
                json!({"input": input, "tools": tools(), "conversation": conversation, "store": false}),
            )
        };
        ask(json!("go")).await.ok();
        ask(json!([output()])).await.ok();
        assert_eq!(offered(&provider), ["tool_search", "crm__find"]);
    });
}

#[test]
fn a_search_of_the_client_is_answered_in_the_next_request() {
    block_on(async {
        let (server, provider) = scripted([search(), call()]).await;
        let search = json!([{"type": "tool_search", "execution": "client"}]);
        let first = server.create(json!({"input": "go", "tools": search})).await.ok();
        assert_eq!(types(&first["output"]), ["tool_search_call"]);
        let call_id = &first["output"][0]["call_id"];
        assert_eq!(*call_id, "c1");
        let go_on = |input: Value| {
            server.create(json!({"input": input, "tools": search, "previous_response_id": first["id"]}))
        };
        let unanswered = go_on(json!("and?")).await;
        assert_eq!(unanswered.error(), (400, "missing_call_output"));
        let told = unanswered.body["error"]["message"].as_str().unwrap();
        assert!(
            told.starts_with("No tool output found for tool search call c1"),
            "{told}"
        );
        let output = json!({"type": "tool_search_output", "call_id": call_id, "execution": "client",
                            "status": "completed", "tools": [tools()[0]]});
        let second = go_on(json!([output])).await.ok();
        assert_eq!(offered(&provider), ["tool_search", "crm__find"]);
        assert_eq!(
            (&second["output"][0]["namespace"], &second["output"][0]["name"]),
            (&json!("crm"), &json!("find"))
        );
    });
}

#[test]
fn wrong_searches_are_errors() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let ask = |tools: Value, fields: Value| {
            let mut body = json!({"input": "go", "tools": tools});
            body.as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            server.create(body)
        };
        let function = |name: String| json!({"type": "function", "name": name, "defer_loading": true});
        let many: Vec<_> = (0..1025).map(|at| function(format!("f{at}"))).collect();
        let mut too_many = json!([{"type": "tool_search"}]);
        too_many.as_array_mut().unwrap().extend(many.iter().cloned());
        let output = |tools: Value| {
            json!({"input": [{"type": "tool_search_output", "call_id": "c1", "execution": "client",
                              "tools": tools}]})
        };
        let search = json!([{"type": "tool_search"}]);
        for (tools, fields, param) in [
            (
                json!([{"type": "tool_search"}, {"type": "tool_search"}]),
                json!({}),
                "tools[1]",
            ),
            (
                json!([{"type": "tool_search", "execution": "here"}]),
                json!({}),
                "tools[0].execution",
            ),
            (
                json!([{"type": "tool_search", "parameters": {}}]),
                json!({}),
                "tools[0].parameters",
            ),
            (
                json!([{"type": "tool_search"}, {"type": "function", "name": "tool_search"}]),
                json!({}),
                "tools[1].name",
            ),
            (too_many, json!({}), "tools"),
            // Only a search can load them.
            (json!(many[..129]), json!({}), "tools"),
            (
                search.clone(),
                json!({"tool_choice": {"type": "tool_search"}}),
                "tool_choice.type",
            ),
            (
                search.clone(),
                output(json!([{"type": "shell"}])),
                "input[0].tools[0].type",
            ),
            (search.clone(), output(json!(many)), "input[0].tools"),
            (search.clone(), output(Value::Null), "input[0].tools"),
            (
                search.clone(),
                json!({"input": [{"type": "tool_search_call", "execution": "client", "arguments": {}}]}),
                "input[0].call_id",
            ),
            (
                search,
                json!({"input": [{"type": "tool_search_call", "arguments": "{}"}]}),
                "input[0].arguments",
            ),
        ] {
            let refused = ask(tools, fields).await;
            assert_eq!(refused.status, 400, "{param}: {}", refused.body);
            assert_eq!(refused.body["error"]["param"], param, "{}", refused.body);
        }
        assert!(provider.asked().is_empty());
    });
}
