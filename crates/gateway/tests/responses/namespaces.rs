//! Functions in namespaces, as Codex offers them: called, answered, and gone on from in each way
//! that a client can.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{block_on, events, interpreter_tool, scripted};

/// Tools as Codex has them: functions, some in namespaces.
fn tools() -> Value {
    let spawn = json!({"type": "function", "name": "spawn_agent", "description": "d", "strict": false,
                       "parameters": {"type": "object", "properties": {"task": {"type": "string"}}}});
    json!([
        {"type": "function", "name": "exec_command", "description": "d", "strict": false,
            "parameters": {"type": "object"}},
        {"type": "namespace", "name": "agents", "description": "Sub-agents.", "tools": [spawn]},
        interpreter_tool()[0],
    ])
}

fn calls() -> ScriptedAnswer {
    ScriptedAnswer::new()
        .reasoning("hm")
        .call("c1", "agents__spawn_agent", "{\"task\": \"look\"}")
}

fn output() -> Value {
    json!({"type": "function_call_output", "call_id": "c1", "output": "spawned"})
}

#[test]
fn a_function_in_a_namespace_is_called_and_answered_by_items_that_are_sent_back() {
    block_on(async {
        let (server, provider) = scripted([calls(), ScriptedAnswer::new().text("done")]).await;
        // As Codex asks: streamed, not stored, with fields of its own.
        let codex = |input: Value| {
            json!({
                "input": input, "tools": tools(), "tool_choice": "auto", "parallel_tool_calls": true,
                "store": false,
                "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"},
                "prompt_cache_key": "k",
                "client_metadata": {"thread_id": "t"}, "text": {"verbosity": "low"},
            })
        };
        let question =
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
        let stream = server.stream(codex(json!([question]))).await;
        let told = events(&stream.text().await.unwrap());
        let done: Vec<_> = told
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| event["item"].clone())
            .collect();
        assert_eq!(done[1]["type"], "function_call");
        assert_eq!(
            (&done[1]["namespace"], &done[1]["name"]),
            (&json!("agents"), &json!("spawn_agent"))
        );
        assert_eq!(told.last().unwrap()["response"]["prompt_cache_key"], "k");
        let input = json!([question, done[0], done[1], output()]);
        let second = server.create(codex(input)).await.ok();
        assert_eq!(second["output"][0]["content"][0]["text"], "done");
        let items = json!(provider.asked()[1].items);
        assert_eq!(
            (&items[2]["name"], items[2].get("namespace")),
            (&json!("agents__spawn_agent"), None)
        );
        assert_eq!(items[3]["output"], "spawned");
    });
}

#[test]
fn a_stored_call_keeps_its_namespace() {
    block_on(async {
        let (server, provider) = scripted([calls(), ScriptedAnswer::new().text("done")]).await;
        let first = server.create(json!({"input": "go", "tools": tools()})).await.ok();
        let id = first["id"].as_str().unwrap();
        let read = server.get(&format!("responses/{id}")).await.ok();
        assert_eq!(read["output"], first["output"]);
        assert_eq!(read["output"][1]["namespace"], "agents");
        assert_eq!(read["tools"], first["tools"]);
        assert_eq!(read["tools"][1]["tools"][0]["type"], "function");
        let body = json!({"input": [output()], "tools": tools(), "previous_response_id": id});
        server.create(body).await.ok();
        let items = json!(provider.asked()[1].items);
        let call = items
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["type"] == "function_call");
        assert_eq!(call.unwrap()["name"], "agents__spawn_agent");
    });
}

#[test]
fn unsupported_tools_of_codex_are_errors() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let mut tools = tools();
        tools
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "web_search", "external_web_access": true}));
        let got = server.create(json!({"input": "go", "tools": tools})).await;
        assert_eq!(got.error(), (400, "invalid_value"));
        assert_eq!(got.body["error"]["param"], "tools[3].type");
        let message = got.body["error"]["message"].as_str().unwrap();
        assert!(
            message.ends_with("this server has no other tools, so leave it out"),
            "{message}"
        );
        assert!(provider.asked().is_empty());
    });
}

#[test]
fn a_call_of_the_client_is_its_own_whatever_its_name_in_a_namespace() {
    block_on(async {
        let call = ScriptedAnswer::new().call("c1", "agents__code_interpreter", "{}");
        let (server, provider) = scripted([call, ScriptedAnswer::new().text("done")]).await;
        let function = json!({"type": "function", "name": "code_interpreter"});
        let tools = json!([{"type": "namespace", "name": "agents", "description": "d", "tools": [function]}]);
        let first = server.create(json!({"input": "go", "tools": tools})).await.ok();
        let go_on = |input: Value| {
            let body = json!({"input": input, "tools": tools, "previous_response_id": first["id"]});
            server.create(body)
        };
        // Only the client can say what came of it.
        assert_eq!(go_on(json!("and?")).await.error(), (400, "missing_call_output"));
        go_on(json!([output()])).await.ok();
        let outputs = provider.asked()[1].items.clone();
        let outputs = json!(outputs)
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["type"] == "function_call_output")
            .count();
        assert_eq!(outputs, 1);
    });
}
