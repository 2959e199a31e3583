//! The list of tools.

use cellblock_testkit::Schema;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, Tool};
use serde_json::json;

use crate::greeter;
use crate::support::{Client, block_on, connect, done, newest, ordinary, server, with_all};

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| &*tool.name).collect()
}

#[test]
fn tools_are_those_of_the_chosen_toolsets_in_one_order() {
    let default = [
        "run_python",
        "list_variables",
        "show_variable",
        "variable_origin",
        "create_session",
        "list_sessions",
        "reset_session",
        "interrupt_session",
        "close_session",
        "upload_file",
        "download_file",
        "list_files",
        "start_process",
        "use_process",
    ];
    let others = [
        "sandbox_exec",
        "sandbox_write_file",
        "sandbox_edit_file",
        "record_result",
        "code_interpreter",
        "render_chart",
    ];
    block_on(async {
        let listed = ordinary().await.list_tools(None).await.unwrap().tools;
        assert_eq!(names(&listed), default);
        let listed = with_all().await.list_tools(None).await.unwrap().tools;
        let all = [&default[..1], &["run_cell"], &default[1..], &others].concat();
        assert_eq!(names(&listed), all);
    });
}

#[test]
fn every_tool_says_what_it_takes_answers_and_changes() {
    block_on(async {
        for tool in with_all().await.list_tools(None).await.unwrap().tools {
            let annotations = tool.annotations.unwrap();
            assert_eq!(annotations.open_world_hint, Some(false), "{}", tool.name);
            for hint in [
                annotations.read_only_hint,
                annotations.destructive_hint,
                annotations.idempotent_hint,
            ] {
                assert!(hint.is_some(), "{}", tool.name);
            }
            for schema in [tool.input_schema, tool.output_schema.unwrap()] {
                assert_eq!(schema["type"], "object", "{}", tool.name);
                let schema = serde_json::to_value(&*schema).unwrap();
                Schema::new(&schema).unwrap();
                for odd in ["$ref", "\"uint", "\"title\":\"Arguments"] {
                    assert!(!schema.to_string().contains(odd), "{odd} in {}", tool.name);
                }
            }
        }
    });
}

#[test]
fn an_added_toolset_is_listed_called_and_explained() {
    block_on(async {
        let server = server(|options| options.toolsets.push(greeter::KIND)).await;
        let client = connect(&server, Client::default(), newest()).await;
        let listed = client.list_tools(None).await.unwrap().tools;
        let greet = listed.iter().find(|tool| tool.name == "greet").unwrap();
        assert_eq!(greet.title.as_deref(), Some("Greet"));
        let takes = greet.input_schema["properties"].as_object().unwrap();
        assert!(takes.contains_key("name") && takes.contains_key("session"));
        let greeted = done(&client, "greet", json!({"name": "Ada"})).await;
        assert_eq!(greeted["greeting"], "Hello Ada");
        assert!(greeted["session"].is_string());
        let prompt = client.get_prompt_once(GetPromptRequestParams::new("greeter"));
        let GetPromptResponse::Complete(prompt) = prompt.await.unwrap() else {
            panic!("not a prompt")
        };
        let told = &prompt.messages[0].content.as_text().unwrap().text;
        assert!(told.starts_with("Greet everybody"), "{told}");
    });
}
