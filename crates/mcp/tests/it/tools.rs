//! The list of tools.

use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::toolset::python;
use cellblock_testkit::Schema;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, Tool, ToolAnnotations};
use serde_json::json;

use crate::greeter;
use crate::support::{Client, all, block_on, connect, done, newest, ordinary, server, with_all};

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
        "sandbox_apply_patch",
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
                for odd in ["$ref", "\"uint", "\"title\":\"Arguments", "\"default\":null"] {
                    assert!(!schema.to_string().contains(odd), "{odd} in {}", tool.name);
                }
            }
        }
    });
}

/// Arguments that frameworks keep for themselves: they drop these, or replace their values. Those
/// of `agent-framework`, `google-adk`, `langchain` and `pydantic`, and of Python.
const RESERVED: [&str; 20] = [
    "session",
    "_meta",
    "chat_options",
    "tools",
    "tool_choice",
    "thread",
    "conversation_id",
    "options",
    "response_format",
    "context",
    "ctx",
    "tool_context",
    "config",
    "runtime",
    "run_manager",
    "callbacks",
    "self",
    "cls",
    "args",
    "kwargs",
];

#[test]
fn names_and_schemas_are_those_that_every_framework_takes() {
    block_on(async {
        let server = server(|options| {
            all(options);
            options.lacks = &[];
            options.project = Some("names".to_owned());
        });
        let client = connect(&server.await, Client::default(), newest()).await;
        let listed = client.list_tools(None).await.unwrap();
        assert_eq!(listed.next_cursor, None);
        assert!(listed.tools.len() > 25, "{}", listed.tools.len());
        for tool in listed.tools {
            let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
            assert!(
                tool.name.len() <= 64 && tool.name.chars().all(plain),
                "{}",
                tool.name
            );
            let schema = json!(*tool.input_schema);
            let text = schema.to_string();
            for nullable in ["\"null\"", "\"default\":null", "\"nullable\""] {
                assert!(!text.contains(nullable), "{nullable} in {}: {text}", tool.name);
            }
            let properties = schema["properties"].as_object();
            for name in properties.into_iter().flat_map(serde_json::Map::keys) {
                assert!(!RESERVED.contains(&name.as_str()), "{name} of {}", tool.name);
            }
        }
    });
}

#[test]
fn only_what_discards_a_sessions_state_is_called_destructive() {
    block_on(async {
        for (network, open) in [(NetworkPolicy::None, false), (NetworkPolicy::Egress, true)] {
            let server = server(|options| {
                options.toolsets = vec![python::KIND];
                options.lacks = &[];
                options.network = network;
                options.egress = Some(EgressPolicy::from_rules(["allowed.invalid"]).unwrap());
            });
            let client = connect(&server.await, Client::default(), newest()).await;
            let tools = client.list_tools(None).await.unwrap().tools;
            let with = |hinted: fn(&ToolAnnotations) -> Option<bool>| {
                let hinted = tools
                    .iter()
                    .filter(|tool| hinted(tool.annotations.as_ref().unwrap()) == Some(true));
                hinted.map(|tool| &*tool.name).collect::<Vec<_>>()
            };
            assert_eq!(
                with(|it| it.destructive_hint),
                ["reset_session", "close_session", "rollback"]
            );
            let reach: &[&str] = if open {
                &["run_python", "try_python", "start_process"]
            } else {
                &[]
            };
            assert_eq!(with(|it| it.open_world_hint), reach);
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
        assert!(takes.contains_key("name") && takes.contains_key("session_id"));
        let greeted = done(&client, "greet", json!({"name": "Ada"})).await;
        assert_eq!(greeted["greeting"], "Hello Ada");
        assert!(greeted["session_id"].is_string());
        let prompt = client.get_prompt_once(GetPromptRequestParams::new("greeter"));
        let GetPromptResponse::Complete(prompt) = prompt.await.unwrap() else {
            panic!("not a prompt")
        };
        let told = &prompt.messages[0].content.as_text().unwrap().text;
        assert!(told.starts_with("Greet everybody"), "{told}");
    });
}
