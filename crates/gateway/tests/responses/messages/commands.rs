//! Commands of bash, and the text editor.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use super::{ask, assembled, blocks, kinds, stream, tool};
use crate::market::says;
use crate::support::{Server, block_on, runs, scripted};

fn bash(id: &str, command: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(
        id,
        "bash_code_execution",
        &json!({ "command": command }).to_string(),
    )
}

fn edit(id: &str, arguments: &Value) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "text_editor_code_execution", &arguments.to_string())
}

async fn bytes(server: &Server, id: &str) -> String {
    let request = server
        .request("GET", &format!("files/{id}/content"))
        .header("anthropic-version", "2023-06-01");
    request.send().await.unwrap().text().await.unwrap()
}

#[test]
fn commands_share_a_shell_and_hand_over_files() {
    block_on(async {
        let answers = [
            bash("c1", "X=7; echo hello > /mnt/data/out.txt; echo done"),
            bash("c2", "echo $X; echo no >&2; false"),
            ScriptedAnswer::new().call("c3", "bash_code_execution", r#"{"cmd": "ls"}"#),
            says("Done."),
        ];
        let (server, provider) = scripted(answers).await;
        let events = stream(&server, json!({"tools": [tool("20250825")]})).await;
        let message = assembled(&events);
        let offered = &provider.asked()[0];
        let allowed = json!(offered.tool_choice);
        assert_eq!(allowed["type"], "allowed_tools", "{allowed}");
        assert!(!allowed.to_string().contains("code_interpreter"), "{allowed}");
        let used = blocks(&message, "server_tool_use");
        assert_eq!(used[0]["name"], "bash_code_execution");
        assert_eq!(
            used[0]["input"]["command"],
            "X=7; echo hello > /mnt/data/out.txt; echo done"
        );
        let results = blocks(&message, "bash_code_execution_tool_result");
        assert_eq!(results[0]["tool_use_id"], used[0]["id"]);
        let first = &results[0]["content"];
        assert_eq!(
            (&first["type"], &first["stdout"], &first["return_code"]),
            (&json!("bash_code_execution_result"), &json!("done\n"), &json!(0)),
            "{message}"
        );
        let file = &first["content"][0];
        assert_eq!(file["type"], "bash_code_execution_output");
        assert_eq!(bytes(&server, file["file_id"].as_str().unwrap()).await, "hello\n");
        let second = &results[1]["content"];
        assert_eq!(
            (&second["stdout"], &second["stderr"], &second["return_code"]),
            (&json!("7\n"), &json!("no\n"), &json!(1))
        );
        assert_eq!(
            results[2]["content"],
            json!({"type": "bash_code_execution_tool_result_error", "error_code": "invalid_tool_input"})
        );
        assert!(
            message["container"]["id"].as_str().unwrap().starts_with("cntr_"),
            "{message}"
        );
    });
}

#[test]
fn the_text_editor_writes_shows_and_edits_files_of_the_sandbox() {
    block_on(async {
        let path = "/mnt/data/notes.txt";
        let answers = [
            edit(
                "c1",
                &json!({"command": "create", "path": path, "file_text": "one\ntwo\nthree\n"}),
            ),
            edit(
                "c2",
                &json!({"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"}),
            ),
            edit(
                "c3",
                &json!({"command": "view", "path": path, "view_range": [2, -1]}),
            ),
            edit("c4", &json!({"command": "view", "path": "/mnt/data/none.txt"})),
            edit(
                "c5",
                &json!({"command": "create", "path": "notes.txt", "file_text": "new"}),
            ),
            edit(
                "c6",
                &json!({"command": "str_replace", "path": path, "old_str": "old", "new_str": "2"}),
            ),
            edit("c7", &json!({"command": "remove", "path": path})),
            runs("c8", "open('notes.txt').read()"),
            says("Done."),
        ];
        let (server, provider) = scripted(answers).await;
        let message = ask(&server, json!({"tools": [tool("20260521")]})).await;
        let results = blocks(&message, "text_editor_code_execution_tool_result");
        let contents: Vec<_> = results.iter().map(|block| &block["content"]).collect();
        assert_eq!(
            *contents[0],
            json!({"type": "text_editor_code_execution_create_result", "is_file_update": false})
        );
        assert_eq!(
            *contents[1],
            json!({"type": "text_editor_code_execution_str_replace_result", "old_start": 2,
                "old_lines": 1, "new_start": 2,
                   "new_lines": 1, "lines": ["-two", "+2"]})
        );
        assert_eq!(
            *contents[2],
            json!({"type": "text_editor_code_execution_view_result", "file_type": "text",
                "content": "2\nthree",
                   "num_lines": 2, "start_line": 2, "total_lines": 3})
        );
        let error = "text_editor_code_execution_tool_result_error";
        assert_eq!(
            (&contents[3]["type"], &contents[3]["error_code"]),
            (&json!(error), &json!("file_not_found"))
        );
        assert_eq!(contents[4]["is_file_update"], true);
        for wrong in &contents[5..7] {
            assert_eq!(
                (&wrong["type"], &wrong["error_code"]),
                (&json!(error), &json!("invalid_tool_input"))
            );
            assert!(wrong["error_message"].as_str().unwrap().len() > 10, "{wrong}");
        }
        // Python sees the same files.
        let code = &blocks(&message, "code_execution_tool_result")[0]["content"];
        assert_eq!(code["stdout"], "new\n");
        assert_eq!(kinds(&message).len(), 17);
        let offered = &provider.asked()[0].tools;
        let offered: Vec<_> = offered.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            offered,
            [
                "code_interpreter",
                "bash_code_execution",
                "text_editor_code_execution"
            ]
        );
    });
}
