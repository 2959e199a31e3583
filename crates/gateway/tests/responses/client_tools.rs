//! Calls that the client serves in other forms than functions: patches of its files, and tools that take
//! one text.

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{block_on, events, names, scripted, types};

fn done() -> ScriptedAnswer {
    ScriptedAnswer::new().text("done")
}

fn patch(arguments: &Value) -> ScriptedAnswer {
    ScriptedAnswer::new().call("c1", "apply_patch", &arguments.to_string())
}

/// The output that the model read last.
fn read(provider: &ScriptedProvider) -> Value {
    json!(provider.asked().last().unwrap().items.last().unwrap())["output"].clone()
}

#[test]
fn a_patch_is_handed_to_the_client_whole() {
    block_on(async {
        let operation =
            json!({"type": "update_file", "path": "a.py", "diff": "@@ def f():\n-    1\n+    2\n"});
        let (server, provider) = scripted([patch(&operation), done()]).await;
        let tools = json!([{"type": "apply_patch"}]);
        let stream = server.stream(json!({"input": "go", "tools": tools})).await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        // OpenAI's SDK for Node throws at events of the diff.
        assert!(!names(&events).iter().any(|name| name.contains("diff")));
        let response = &events.last().unwrap()["response"];
        assert_eq!(types(&response["output"]), ["apply_patch_call"]);
        let call = &response["output"][0];
        assert_eq!(
            (&call["status"], &call["operation"]),
            (&json!("completed"), &operation)
        );
        let output = json!({"type": "apply_patch_call_output", "call_id": "c1", "status": "failed",
                            "output": "a.py: context not found"});
        let body = json!({"input": [output], "tools": tools, "previous_response_id": response["id"]});
        server.create(body).await.ok();
        assert_eq!(
            read(&provider),
            "The patch was not applied: a.py: context not found"
        );
    });
}

#[test]
fn a_patch_with_wrong_syntax_goes_back_to_the_model() {
    block_on(async {
        let wrong = json!({"type": "update_file", "path": "a.py", "diff": "@@ -1,2 +1,2 @@\n-1\n+2\n"});
        let right = json!({"type": "delete_file", "path": "a.py"});
        let (server, provider) = scripted([patch(&wrong), patch(&right)]).await;
        let tools = json!([{"type": "apply_patch"}]);
        let response = server.create(json!({"input": "go", "tools": tools})).await.ok();
        assert_eq!(types(&response["output"]), ["apply_patch_call"]);
        assert_eq!(response["output"][0]["operation"], right);
        let told = read(&provider);
        assert!(told.as_str().unwrap().contains("no line numbers"), "{told}");
    });
}

fn container_patch(id: &str, lines: &str) -> ScriptedAnswer {
    let patch = format!("*** Begin Patch\n{lines}\n*** End Patch");
    ScriptedAnswer::new().call(id, "patch", &json!({"patch": patch}).to_string())
}

#[test]
fn the_files_of_a_container_are_patched_here_and_never_by_the_client() {
    block_on(async {
        let shell = |id: &str, command: &str| {
            ScriptedAnswer::new().call(id, "shell", &json!({"commands": [command]}).to_string())
        };
        let add = "*** Add File: a.txt\n+one\n+two\n*** Add File: b/c.txt\n+x";
        let change = "*** Update File: /mnt/data/a.txt\n one\n-two\n+three\n*** Delete File: b/c.txt";
        let wrong = "*** Delete File: a.txt\n*** Update File: gone.txt\n-x\n+y";
        let (server, provider) = scripted([
            container_patch("c1", add),
            container_patch("c2", wrong),
            container_patch("c3", change),
            container_patch("c4", "*** Delete File: /etc/passwd"),
            shell("c5", "cat a.txt; ls b"),
            done(),
        ])
        .await;
        let tools =
            json!([{"type": "apply_patch"}, {"type": "shell", "environment": {"type": "container_auto"}}]);
        let stream = server.stream(json!({"input": "go", "tools": tools})).await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        assert_eq!(
            types(&response["output"]),
            [
                "mcp_call",
                "mcp_call",
                "mcp_call",
                "mcp_call",
                "shell_call",
                "shell_call_output",
                "message"
            ]
        );
        let call = |at: usize| &response["output"][at];
        assert_eq!(
            (&call(0)["server_label"], &call(0)["name"]),
            (&json!("cellblock"), &json!("patch"))
        );
        for (at, status) in ["completed", "failed", "completed", "failed"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(call(at)["status"], status, "{}", call(at));
        }
        assert!(call(1)["error"].to_string().contains("gone.txt"), "{}", call(1));
        assert!(
            call(3)["error"].to_string().contains("not below the workspace"),
            "{}",
            call(3)
        );
        assert_eq!(call(5)["output"][0]["stdout"], "one\nthree\n");
        let offered = json!(provider.asked()[0].tools);
        let names: Vec<_> = offered
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert_eq!(names, ["apply_patch", "shell", "patch"]);
    });
}

#[test]
fn a_container_is_patched_only_in_requests_that_have_both() {
    block_on(async {
        let (server, provider) = scripted([done(), done(), done()]).await;
        let patch = json!({"type": "apply_patch"});
        let auto = json!({"type": "shell", "environment": {"type": "container_auto"}});
        let local = json!({"type": "shell", "environment": {"type": "local"}});
        for tools in [json!([patch]), json!([auto]), json!([patch, local])] {
            server.create(json!({"input": "go", "tools": tools})).await.ok();
            let offered = json!(provider.asked().last().unwrap().tools);
            assert!(!offered.to_string().contains("\"name\":\"patch\""), "{offered}");
        }
    });
}

#[test]
fn a_text_is_handed_to_the_client_and_answered() {
    block_on(async {
        let call = ScriptedAnswer::new().call("c1", "plan", "{\"input\": \"a b\"}");
        let (server, provider) = scripted([call, done(), done()]).await;
        let format = json!({"type": "grammar", "syntax": "lark", "definition": "start: /[a-z ]+/"});
        let tool = json!({"type": "custom", "name": "plan", "description": "Plans.", "format": format});
        let choice = json!({"type": "custom", "name": "plan"});
        let body = json!({"input": "go", "tools": [tool], "tool_choice": choice});
        let stream = server.stream(body).await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        assert_eq!(
            (&response["tools"], &response["tool_choice"]),
            (&json!([tool]), &choice)
        );
        let item = &response["output"][0];
        assert_eq!(
            (&item["type"], &item["name"], &item["input"], &item["status"]),
            (
                &json!("custom_tool_call"),
                &json!("plan"),
                &json!("a b"),
                &json!("completed")
            )
        );
        let offered = json!(provider.asked()[0].tools);
        assert!(
            offered[0]["description"]
                .as_str()
                .unwrap()
                .contains("start: /[a-z ]+/")
        );
        let part = json!({"type": "input_text", "text": "fine"});
        for output in [json!("fine"), json!([part])] {
            let output = json!({"type": "custom_tool_call_output", "call_id": "c1", "output": output});
            let input = json!([{"role": "user", "content": "go"}, item, output]);
            server.create(json!({"input": input, "tools": [tool]})).await.ok();
            let read = read(&provider);
            assert_eq!(read.as_str().or(read[0]["text"].as_str()), Some("fine"));
            let call = json!(provider.asked().last().unwrap().items[1]);
            assert_eq!(call["arguments"], "{\"input\":\"a b\"}");
        }
    });
}

#[test]
fn a_text_that_does_not_match_goes_back_to_the_model() {
    block_on(async {
        let call =
            |input: &str| ScriptedAnswer::new().call("c1", "crm__plan", &json!({"input": input}).to_string());
        let (server, provider) = scripted([call("A1"), call("ok")]).await;
        let format = json!({"type": "grammar", "syntax": "regex", "definition": "[a-z]+"});
        let tool = json!({"type": "custom", "name": "plan", "format": format});
        let namespace = json!({"type": "namespace", "name": "crm", "description": "d", "tools": [tool]});
        let response = server
            .create(json!({"input": "go", "tools": [namespace]}))
            .await
            .ok();
        let item = &response["output"][0];
        assert_eq!(
            (&item["namespace"], &item["name"], &item["input"]),
            (&json!("crm"), &json!("plan"), &json!("ok"))
        );
        assert_eq!(response["output"].as_array().unwrap().len(), 1);
        let told = read(&provider);
        assert!(told.as_str().unwrap().contains("`[a-z]+`"), "{told}");
    });
}

#[test]
fn tools_that_a_model_cannot_tell_apart_are_errors() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let function = |name: &str| json!({"type": "function", "name": name});
        let custom = |name: &str| json!({"type": "custom", "name": name});
        let shell = json!({"type": "shell"});
        for tools in [
            json!([function("f"), custom("f")]),
            json!([shell, function("shell")]),
            json!([{"type": "apply_patch"}, custom("apply_patch")]),
            json!([shell, shell]),
        ] {
            let refused = server.create(json!({"input": "go", "tools": tools})).await;
            assert_eq!(refused.error(), (400, "invalid_value"), "{tools}");
        }
    });
}

#[test]
fn the_older_form_of_local_commands_is_answered_by_either_id() {
    block_on(async {
        let call = || ScriptedAnswer::new().call("c1", "local_shell", "{\"command\": [\"ls\"]}");
        for key in ["id", "call_id"] {
            let (server, provider) = scripted([call(), done()]).await;
            let tools = json!([{"type": "local_shell"}]);
            let stream = server.stream(json!({"input": "go", "tools": tools})).await;
            let events = events(&stream.text().await.unwrap());
            Order::check(&events).unwrap();
            let response = &events.last().unwrap()["response"];
            let item = &response["output"][0];
            assert_eq!(item["type"], "local_shell_call");
            assert_eq!(
                item["action"],
                json!({"type": "exec", "command": ["ls"], "env": {}})
            );
            let mut output = json!({"type": "local_shell_call_output", "output": "a.txt"});
            output[key] = item["call_id"].clone();
            let body = json!({"input": [output], "tools": tools, "previous_response_id": response["id"]});
            server.create(body).await.ok();
            assert_eq!(read(&provider), "a.txt");
        }
    });
}
