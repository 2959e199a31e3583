//! Commands of a shell: in containers, where they run side by side, and on the client's computer.

use std::time::{Duration, Instant};

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_testkit::wait::until_ok;
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{Server, block_on, events, names, runs, scripted, serve_with, types};

fn auto() -> Value {
    json!([{"type": "shell", "environment": {"type": "container_auto"}}])
}

fn local() -> Value {
    json!([{"type": "shell", "environment": {"type": "local"}}])
}

fn calls(id: &str, arguments: &Value) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "shell", &arguments.to_string())
}

fn commands(id: &str, commands: &[&str]) -> ScriptedAnswer {
    calls(id, &json!({"commands": commands}))
}

fn done() -> ScriptedAnswer {
    ScriptedAnswer::new().text("done")
}

fn exit(code: i32) -> Value {
    json!({"type": "exit", "exit_code": code})
}

/// The outputs of the first call of a response.
fn outputs(response: &Value) -> &Vec<Value> {
    let items = response["output"].as_array().unwrap();
    let output = items.iter().find(|item| item["type"] == "shell_call_output");
    output.unwrap()["output"].as_array().unwrap()
}

/// Runs commands, and returns their outputs.
async fn run(arguments: &Value) -> Vec<Value> {
    let (server, _) = scripted([calls("c1", arguments), done()]).await;
    let response = server.create(json!({"input": "go", "tools": auto()})).await.ok();
    assert_eq!(response["status"], "completed");
    outputs(&response).clone()
}

#[test]
fn commands_are_streamed_in_the_order_that_clients_accept() {
    block_on(async {
        let arguments = json!({"commands": ["echo a; echo b >&2", "exit 3"], "max_output_length": 100});
        let (server, provider) = scripted([calls("c1", &arguments), done()]).await;
        let stream = server.stream(json!({"input": "go", "tools": auto()})).await;
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        let told: Vec<_> = names(&events)
            .into_iter()
            .filter(|name| name.contains("shell_call"))
            .filter(|name| !name.ends_with("content.delta"))
            .collect();
        let command = ["added", "delta", "done"].map(|step| format!("response.shell_call_command.{step}"));
        let content = "response.shell_call_output_content.done".to_owned();
        let expected: Vec<_> = command
            .iter()
            .chain(&command)
            .cloned()
            .chain([content.clone(), content])
            .collect();
        assert_eq!(told, expected);
        let response = &events.last().unwrap()["response"];
        assert_eq!(
            types(&response["output"]),
            ["shell_call", "shell_call_output", "message"]
        );
        let (call, output) = (&response["output"][0], &response["output"][1]);
        assert_eq!(call["action"]["commands"], arguments["commands"]);
        assert_eq!(call["action"].get("timeout_ms"), Some(&Value::Null));
        assert_eq!(call["environment"]["type"], "container_reference");
        assert!(
            call["environment"]["container_id"]
                .as_str()
                .unwrap()
                .starts_with("cntr_")
        );
        assert_eq!(
            (&output["call_id"], &output["max_output_length"]),
            (&json!("c1"), &json!(100))
        );
        assert_eq!(
            output["output"],
            json!([
                {"stdout": "a\n", "stderr": "b\n", "outcome": exit(0)},
                {"stdout": "", "stderr": "", "outcome": exit(3)},
            ])
        );
        let result = json!(provider.asked()[1].items.last().unwrap())["output"].clone();
        assert_eq!(
            result,
            "[command 1]\na\n[stderr]\nb\n[exit code] 0\n[command 2]\n[exit code] 3"
        );
    });
}

#[test]
fn commands_of_a_call_run_at_the_same_time() {
    block_on(async {
        // Each ends only when the other has begun.
        let wait = |own: &str, other: &str| {
            format!("touch {own}; until [ -e {other} ]; do sleep 0.1; done; echo {own}")
        };
        let (one, other) = (wait("one", "other"), wait("other", "one"));
        let told = run(&json!({"commands": [one, other], "timeout_ms": 30_000})).await;
        let stdout: Vec<_> = told
            .iter()
            .map(|output| output["stdout"].as_str().unwrap())
            .collect();
        assert_eq!(stdout, ["one\n", "other\n"]);
    });
}

#[test]
fn a_timeout_keeps_what_was_written_and_ends_what_was_started() {
    block_on(async {
        let command = "echo begun; (sleep 4; touch late) & sleep 60";
        let answers = [
            calls(
                "c1",
                &json!({"commands": [command, "echo quick"], "timeout_ms": 1000}),
            ),
            commands("c2", &["sleep 5; ls late 2>&1 || echo ended"]),
            done(),
        ];
        let (server, provider) = scripted(answers).await;
        let begun = Instant::now();
        let response = server.create(json!({"input": "go", "tools": auto()})).await.ok();
        assert!(begun.elapsed() < Duration::from_secs(50));
        assert_eq!(
            json!(outputs(&response)),
            json!([
                {"stdout": "begun\n", "stderr": "", "outcome": {"type": "timeout"}},
                {"stdout": "quick\n", "stderr": "", "outcome": exit(0)},
            ])
        );
        let result = json!(provider.asked()[1].items.last().unwrap())["output"].clone();
        assert!(
            result.as_str().unwrap().contains("[the timeout was 1000 ms]"),
            "{result}"
        );
        let later = response["output"][3]["output"][0]["stdout"].as_str().unwrap();
        assert!(later.ends_with("ended\n"), "{later}");
    });
}

#[test]
fn what_a_command_leaves_running_is_there_for_the_next_call() {
    block_on(async {
        let answers = [
            commands(
                "c1",
                &["while :; do date +%N > beat; sleep 0.2; done & sleep 0.5"],
            ),
            commands(
                "c2",
                &["one=$(cat beat); sleep 1; [ \"$one\" != \"$(cat beat)\" ] && echo alive"],
            ),
            done(),
        ];
        let (server, _) = scripted(answers).await;
        let response = server.create(json!({"input": "go", "tools": auto()})).await.ok();
        assert_eq!(response["output"][3]["output"][0]["stdout"], "alive\n");
    });
}

#[test]
fn fifty_commands_have_fifty_outputs_in_order() {
    block_on(async {
        let many: Vec<_> = (0..50).map(|number| format!("echo {number}")).collect();
        let told = run(&json!({"commands": many})).await;
        let numbers = told
            .iter()
            .map(|output| output["stdout"].as_str().unwrap().trim().to_owned());
        assert!(numbers.eq((0..50).map(|number| number.to_string())));
    });
}

#[test]
fn output_without_end_is_cut_and_the_command_continues() {
    block_on(async {
        let flood = "yes | head -c 50000000; echo end >&2; exit 4";
        let arguments = json!({"commands": [flood], "max_output_length": 1000, "timeout_ms": 60_000});
        let (server, provider) = scripted([calls("c1", &arguments), done()]).await;
        let response = server.create(json!({"input": "go", "tools": auto()})).await.ok();
        let told = outputs(&response);
        assert_eq!(told[0]["stdout"].as_str().unwrap().len(), 1000);
        assert_eq!(told[0]["outcome"], exit(4));
        let result = read(&provider)[0].as_str().unwrap().to_owned();
        let (_, left_out) = result.rsplit_once("[about ").unwrap();
        let left_out: u64 = left_out.split(' ').next().unwrap().parse().unwrap();
        // `end`, and perhaps a complaint of `yes` about its closed pipe.
        assert!((49_999_004..49_999_200).contains(&left_out), "{result}");
    });
}

#[test]
fn arguments_that_cannot_be_run_go_back_to_the_model() {
    block_on(async {
        let answers = [
            calls("c1", &json!({"commands": []})),
            commands("c2", &["echo ok"]),
            done(),
        ];
        let (server, provider) = scripted(answers).await;
        let response = server.create(json!({"input": "go", "tools": auto()})).await.ok();
        assert_eq!(
            types(&response["output"]),
            ["shell_call", "shell_call_output", "message"]
        );
        let told = json!(provider.asked()[1].items.last().unwrap())["output"].clone();
        assert!(
            told.as_str().unwrap().starts_with("The commands were not run:"),
            "{told}"
        );
    });
}

#[test]
fn code_and_commands_share_a_container_and_its_files() {
    block_on(async {
        let answers = [
            runs("c1", "open('by_code', 'w').write('x')"),
            commands("c2", &["cat by_code; echo y > /mnt/data/by_command.txt"]),
            ScriptedAnswer::new().text("See [it](sandbox:/mnt/data/by_command.txt)."),
        ];
        let (server, _) = scripted(answers).await;
        let tools = json!([
            {"type": "code_interpreter", "container": {"type": "auto"}}, auto()[0],
        ]);
        let response = server.create(json!({"input": "go", "tools": tools})).await.ok();
        let output = response["output"].as_array().unwrap();
        assert_eq!(
            output[0]["container_id"],
            output[1]["environment"]["container_id"]
        );
        assert_eq!(outputs(&response)[0]["stdout"], "x");
        let cited = &output[3]["content"][0]["annotations"];
        let cited = cited
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["filename"] == "by_command.txt");
        let (container, file) = (&output[0]["container_id"], &cited.unwrap()["file_id"]);
        let path = format!(
            "containers/{}/files/{}",
            container.as_str().unwrap(),
            file.as_str().unwrap()
        );
        assert_eq!(server.get(&path).await.ok()["path"], "/mnt/data/by_command.txt");
    });
}

#[test]
fn a_client_that_leaves_ends_its_commands() {
    block_on(async {
        let (server, _) = scripted([
            commands("c1", &["touch begun; echo begun; sleep 3; touch ended"]),
            commands("c2", &["sleep 4; ls"]),
            done(),
        ])
        .await;
        let container = server.post("containers", &json!({"name": "x"})).await.ok()["id"].clone();
        let environment = json!({"type": "container_reference", "container_id": container});
        let tools = json!([{"type": "shell", "environment": environment}]);
        let mut stream = server.stream(json!({"input": "go", "tools": tools})).await;
        let mut text = String::new();
        while !text.contains("response.shell_call_output_content.delta") {
            text += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
        }
        drop(stream);
        let second = until_ok(async || {
            let response = server.create(json!({"input": "go", "tools": tools})).await;
            if response.status == 200 {
                Ok(response.body)
            } else {
                Err(response.body.to_string())
            }
        })
        .await;
        let files = outputs(&second)[0]["stdout"].as_str().unwrap();
        assert!(files.contains("begun") && !files.contains("ended"), "{files}");
    });
}

/// The outputs that the model read in its last request.
fn read(provider: &cellblock_agent::provider::scripted::ScriptedProvider) -> Vec<Value> {
    let asked = provider.asked();
    let items = json!(asked.last().unwrap().items);
    let items = items.as_array().unwrap().iter();
    items
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| item["output"].clone())
        .collect()
}

async fn first(server: &Server, store: bool) -> Value {
    let body = json!({"input": "go", "tools": auto(), "store": store});
    server.create(body).await.ok()
}

#[test]
fn items_that_are_sent_back_are_the_history_of_the_model() {
    block_on(async {
        for store in [false, true] {
            let (server, provider) = scripted([commands("c1", &["echo a"]), done(), done()]).await;
            let first = first(&server, store).await;
            let mut items = first["output"].as_array().unwrap().clone();
            items.insert(0, json!({"role": "user", "content": "go"}));
            items.push(json!({"role": "user", "content": "and?"}));
            let body = json!({"input": items, "tools": auto(), "store": store});
            server.create(body).await.ok();
            assert_eq!(read(&provider), ["a\n[exit code] 0"], "store: {store}");
        }
    });
}

#[test]
fn a_stored_call_is_found_by_its_reference_and_its_output_counts_once() {
    block_on(async {
        let mut answers = vec![commands("c1", &["echo a"])];
        answers.extend((0..7).map(|_| done()));
        let (server, provider) = scripted(answers).await;
        let first = first(&server, true).await;
        let (call, output) = (&first["output"][0], &first["output"][1]);
        let mut rebuilt = output.clone();
        rebuilt
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "id" && key != "status");
        let reference = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
        let more = json!({"role": "user", "content": "and?"});
        let mut bare = call.clone();
        bare.as_object_mut().unwrap().remove("environment");
        for input in [
            // As the AI SDK sends them.
            json!([reference(call), rebuilt, more]),
            json!([reference(call), reference(output), more]),
            // A client has cut the history.
            json!([call, more]),
            json!([bare, more]),
            json!([output, more]),
        ] {
            server.create(json!({"input": input, "tools": auto()})).await.ok();
            assert_eq!(read(&provider), ["a\n[exit code] 0"], "{input}");
        }
        let goes_on = json!({"input": "and?", "tools": auto(), "previous_response_id": first["id"]});
        server.create(goes_on).await.ok();
        assert_eq!(read(&provider), ["a\n[exit code] 0"]);
    });
}

#[test]
fn commands_of_two_turns_with_one_call_id_are_both_in_the_history() {
    block_on(async {
        let answers = [
            commands("call_0", &["echo a"]),
            done(),
            commands("call_0", &["echo b"]),
            done(),
            done(),
        ];
        let (server, provider) = scripted(answers).await;
        let first = first(&server, true).await;
        let goes_on = |earlier: &Value| {
            let id = &earlier["id"];
            server.create(json!({"input": "and?", "tools": auto(), "previous_response_id": id}))
        };
        let second = goes_on(&first).await.ok();
        assert_ne!(second["output"][0]["call_id"], "call_0");
        goes_on(&second).await.ok();
        assert_eq!(read(&provider), ["a\n[exit code] 0", "b\n[exit code] 0"]);
    });
}

#[test]
fn a_conversation_keeps_commands_once() {
    block_on(async {
        let (server, provider) = scripted([commands("c1", &["echo a"]), done(), done()]).await;
        let conversation = server.post("conversations", &json!({})).await.ok()["id"].clone();
        for _ in 0..2 {
            let body = json!({"input": "go", "tools": auto(), "conversation": conversation});
            server.create(body).await.ok();
        }
        assert_eq!(read(&provider), ["a\n[exit code] 0"]);
        let id = conversation.as_str().unwrap();
        let items = server
            .get(&format!("conversations/{id}/items?order=asc"))
            .await
            .ok();
        assert_eq!(
            types(&items["data"]),
            [
                "message",
                "shell_call",
                "shell_call_output",
                "message",
                "message",
                "message"
            ]
        );
    });
}

#[test]
fn a_local_call_is_answered_by_the_client() {
    block_on(async {
        let (server, provider) = scripted([commands("c1", &["ls"]), done()]).await;
        let first = server.create(json!({"input": "go", "tools": local()})).await.ok();
        assert_eq!(first["status"], "completed");
        assert_eq!(types(&first["output"]), ["shell_call"]);
        assert_eq!(first["output"][0]["environment"], json!({"type": "local"}));
        // As openai-agents sends it, with fields that the API does not have.
        let output = json!({"type": "shell_call_output", "call_id": "c1", "status": "failed",
            "shell_output": "x",
            "output": [{"stdout": "", "stderr": "no", "outcome": exit(2)}]});
        let body = json!({"input": [output], "tools": local(), "previous_response_id": first["id"]});
        server.create(body).await.ok();
        assert_eq!(read(&provider), ["[stderr]\nno\n[exit code] 2"]);
    });
}

#[test]
fn half_a_local_pair_is_an_error_that_clients_recognize() {
    block_on(async {
        let (server, _) = scripted([commands("c1", &["ls"])]).await;
        let first = server.create(json!({"input": "go", "tools": local()})).await.ok();
        let goes_on = |input: Value| {
            let body = json!({"input": input, "tools": local(), "previous_response_id": first["id"]});
            server.create(body)
        };
        let missing = goes_on(json!("and?")).await;
        assert_eq!(missing.error(), (400, "missing_call_output"));
        let message = missing.body["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("No tool output found for shell call c1"),
            "{message}"
        );
        assert_eq!(missing.body["error"]["param"], "input");
        let output = json!({"type": "shell_call_output", "call_id": "c9", "output": []});
        let unknown = goes_on(json!([output])).await;
        let message = unknown.body["error"]["message"].as_str().unwrap();
        let words = "No tool call found for shell call output with call_id c9";
        assert!(message.starts_with(words), "{message}");
    });
}

#[test]
fn skills_of_the_client_are_part_of_the_prompt() {
    block_on(async {
        let (server, provider) = scripted([done()]).await;
        let skill = json!({"name": "pdf", "description": "Reads PDF files.", "path": "/skills/pdf"});
        let environment = json!({"type": "local", "skills": [skill]});
        let tools = json!([{"type": "shell", "environment": environment}]);
        server.create(json!({"input": "go", "tools": tools})).await.ok();
        let prompt = provider.asked()[0].instructions.clone().unwrap();
        assert!(
            prompt.contains("- `pdf` in `/skills/pdf`: Reads PDF files."),
            "{prompt}"
        );
    });
}

#[test]
fn commands_read_the_skills_of_their_environment_in_the_versions_that_the_container_began_with() {
    block_on(async {
        let read = |id: &str| commands(id, &["cat /skills/report/SKILL.md"]);
        let (server, provider) = scripted([read("c1"), done(), read("c2"), done()]).await;
        let upload = async |path: &str, body: &str| {
            let form = format!(
                "--cut\r\ncontent-disposition: form-data; name=\"files[]\"; \
                 filename=\"report/SKILL.md\"\r\n\r\n\
                 ---\nname: report\ndescription: Writes reports.\n---\n{body}\r\n--cut--\r\n"
            );
            let request = server.request("POST", path);
            let request = request.header("content-type", "multipart/form-data; boundary=cut");
            server.send(request.body(form)).await.ok()
        };
        let id = upload("skills", "First.").await["id"].clone();
        let reference = json!({"type": "skill_reference", "skill_id": id, "version": "latest"});
        let environment = json!({"type": "container_auto", "memory_limit": null, "skills": [reference]});
        let tools = json!([{"type": "shell", "environment": environment}]);
        let first = server.create(json!({"input": "go", "tools": tools})).await.ok();
        assert_eq!(first["tools"], tools);
        let prompt = provider.asked()[0].instructions.clone().unwrap();
        assert!(
            prompt.contains("- `report` (`/skills/report/SKILL.md`): Writes reports."),
            "{prompt}"
        );

        // A later version does not end the conversation's container.
        let versions = format!("skills/{}/versions", id.as_str().unwrap());
        upload(&versions, "Second.").await;
        let body = json!({"input": "again", "tools": tools, "previous_response_id": first["id"]});
        let second = server.create(body).await.ok();
        assert_eq!(
            second["output"][0]["environment"],
            first["output"][0]["environment"]
        );
        for response in [&first, &second] {
            let stdout = outputs(response)[0]["stdout"].as_str().unwrap();
            assert!(stdout.contains("First."), "{response}");
        }
    });
}

#[test]
fn a_forced_shell_applies_to_the_first_step_only() {
    block_on(async {
        let (server, provider) = scripted([commands("c1", &["echo a"]), done()]).await;
        let choice = json!({"type": "shell"});
        let body = json!({"input": "go", "tools": auto(), "tool_choice": choice});
        let response = server.create(body).await.ok();
        assert_eq!(response["tool_choice"], choice);
        let asked = provider.asked();
        assert_eq!(json!(asked[0].tool_choice), choice);
        assert_eq!(json!(asked[1].tool_choice), "auto");
    });
}

#[test]
fn a_gateway_that_checks_code_rejects_commands_in_containers() {
    block_on(async {
        let provider = cellblock_agent::provider::scripted::ScriptedProvider::new([done()]);
        let strict = |options: &mut cellblock_gateway::Options| {
            options.cells.guard = cellblock_interpreter::cell::Guard::Strict;
        };
        let server = serve_with(std::sync::Arc::new(provider), strict).await;
        let refused = server.create(json!({"input": "go", "tools": auto()})).await;
        assert_eq!(refused.error(), (400, "unsupported_tool"));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("Tool 'shell' is not supported"), "{message}");
        server.create(json!({"input": "go", "tools": local()})).await.ok();
    });
}
