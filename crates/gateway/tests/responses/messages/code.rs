//! Messages with text, and with Python that the model writes.

use cellblock_agent::provider::ProviderError;
use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use super::{after, ask, assembled, blocks, kinds, plain, stream, tool, user};
use crate::market::says;
use crate::support::{block_on, runs, scripted};

#[test]
fn a_text_is_answered_as_a_whole_and_as_a_stream() {
    block_on(async {
        let answer = || ScriptedAnswer::new().reasoning("hm").text("Hello there, Ada.");
        let (server, provider) = scripted([answer(), answer(), answer()]).await;
        let system = json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]);
        let fields = json!({"system": system, "stop_sequences": ["END"], "temperature": 0.5, "top_p": 0.9,
                            "metadata": {"user_id": "u1"}, "thinking": {"type": "disabled"}});
        let whole = ask(&server, fields.clone()).await;
        assert!(whole["id"].as_str().unwrap().starts_with("msg_"), "{whole}");
        assert_eq!(
            (&whole["type"], &whole["role"], &whole["model"]),
            (&json!("message"), &json!("assistant"), &json!("m"))
        );
        assert_eq!(
            (
                &whole["stop_reason"],
                &whole["stop_sequence"],
                &whole["container"]
            ),
            (&json!("end_turn"), &Value::Null, &Value::Null)
        );
        assert_eq!(kinds(&whole), ["text"]);
        assert_eq!(whole["content"][0]["text"], "Hello there, Ada.");
        assert_eq!(whole["usage"]["input_tokens"], 0);
        assert!(whole["usage"]["output_tokens"].as_u64().unwrap() > 2, "{whole}");

        let asked = &provider.asked()[0];
        assert_eq!(asked.instructions.as_deref(), Some("Be brief.\n\nBe kind."));
        assert_eq!(asked.max_output_tokens, Some(1000));
        assert_eq!(asked.sampling.stop, ["END"]);

        let events = stream(&server, fields.clone()).await;
        assert_eq!(plain(&assembled(&events)), plain(&whole));
        let deltas = events
            .iter()
            .filter(|event| event["type"] == "content_block_delta");
        assert!(deltas.count() > 1, "{events:?}");

        let mut thinking = fields;
        thinking["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
        let thought = ask(&server, thinking).await;
        assert_eq!(kinds(&thought), ["thinking", "text"]);
        assert_eq!(thought["content"][0]["thinking"], "hm");
    });
}

#[test]
fn python_runs_and_its_result_is_a_block() {
    block_on(async {
        let code = "import sys\nprint('4\"2')\nprint('oops', file=sys.stderr)\n6 * 7";
        let answers = || [runs("c1", code), says("It is 42.")];
        let (server, provider) = scripted(answers().into_iter().chain(answers())).await;
        let fields = json!({"tools": [tool("20250522")]});
        let whole = ask(&server, fields.clone()).await;
        assert_eq!(
            kinds(&whole),
            ["server_tool_use", "code_execution_tool_result", "text"]
        );
        let (used, result) = (&whole["content"][0], &whole["content"][1]);
        assert_eq!(used["name"], "code_execution");
        assert_eq!(used["input"], json!({ "code": code }));
        assert!(used["id"].as_str().unwrap().starts_with("srvtoolu_"), "{used}");
        assert_eq!(used["id"], result["tool_use_id"]);
        assert_eq!(
            result["content"],
            json!({"type": "code_execution_result", "stdout": "4\"2\n42\n", "stderr": "oops\n",
                "return_code": 0, "content": []})
        );
        assert_eq!(whole["stop_reason"], "end_turn");
        let container = &whole["container"];
        assert!(container["id"].as_str().unwrap().starts_with("cntr_"), "{whole}");
        assert!(
            container["expires_at"].as_str().unwrap().ends_with('Z'),
            "{whole}"
        );
        let items = json!(provider.asked()[1].items);
        assert!(items.to_string().contains("\"42\""), "{items}");

        let events = stream(&server, fields).await;
        assert_eq!(plain(&assembled(&events)), plain(&whole));
        let deltas = events
            .iter()
            .filter(|event| event["delta"]["type"] == "input_json_delta");
        assert!(deltas.count() > 3, "{events:?}");
    });
}

#[test]
fn code_that_raises_has_a_result_and_arguments_that_are_wrong_have_an_error() {
    block_on(async {
        let answers = [
            runs("c1", "print('before')\n1 / 0"),
            ScriptedAnswer::new().call("c2", "code_interpreter", "{broken"),
            says("No."),
        ];
        let (server, _) = scripted(answers).await;
        let whole = ask(&server, json!({"tools": [tool("20250522")]})).await;
        let results = blocks(&whole, "code_execution_tool_result");
        let raised = &results[0]["content"];
        assert_eq!(
            (&raised["return_code"], &raised["stdout"]),
            (&json!(1), &json!("before\n"))
        );
        assert!(
            raised["stderr"].as_str().unwrap().contains("ZeroDivisionError"),
            "{raised}"
        );
        assert_eq!(
            results[1]["content"],
            json!({"type": "code_execution_tool_result_error", "error_code": "invalid_tool_input"})
        );
    });
}

#[test]
fn variables_are_kept_in_a_container_that_a_later_request_names() {
    block_on(async {
        let answers = [
            runs("c1", "x = 41"),
            says("Set."),
            runs("c2", "x += 1\nx"),
            says("42."),
            runs("c3", "x += 1\nx"),
            says("43."),
            runs("c4", "'x' in globals()"),
            says("Gone."),
        ];
        let (server, provider) = scripted(answers).await;
        let tools = json!([tool("20260120")]);
        let first = ask(&server, json!({ "tools": tools })).await;
        let id = first["container"]["id"].clone();
        let messages = after(&first, &json!("And one more?"));
        for (container, value) in [(id.clone(), "x: 42\n"), (json!({ "id": id }), "x: 43\n")] {
            let fields = json!({"tools": tools, "messages": messages, "container": container});
            let second = ask(&server, fields).await;
            let result = &blocks(&second, "code_execution_tool_result")[0]["content"];
            assert_eq!(result["stdout"], value, "{second}");
            assert_eq!(second["container"]["id"], id);
        }
        // The model has read what came before.
        let items = json!(provider.asked()[2].items);
        assert!(items.to_string().contains("x = 41"), "{items}");
        // Another request has a container of its own.
        let third = ask(&server, json!({ "tools": tools })).await;
        let result = &blocks(&third, "code_execution_tool_result")[0]["content"];
        assert_eq!(result["stdout"], "False\n", "{third}");
        assert_ne!(third["container"]["id"], id);
    });
}

#[test]
fn two_calls_of_one_step_run_in_one_container_and_their_blocks_do_not_overlap() {
    block_on(async {
        let call = |code: &str| json!({ "code": code }).to_string();
        let both = ScriptedAnswer::new()
            .call("c1", "code_interpreter", &call("y = 1"))
            .call("c2", "code_interpreter", &call("y + 1"));
        let (server, _) = scripted([both, says("2.")]).await;
        let events = stream(&server, json!({"tools": [tool("20260120")]})).await;
        let message = assembled(&events);
        let results = blocks(&message, "code_execution_tool_result");
        assert_eq!(results[1]["content"]["stdout"], "2\n", "{message}");
        let ids: Vec<_> = blocks(&message, "server_tool_use")
            .iter()
            .map(|block| block["id"].clone())
            .collect();
        assert_eq!(
            ids,
            [
                results[0]["tool_use_id"].clone(),
                results[1]["tool_use_id"].clone()
            ]
        );
    });
}

#[test]
fn the_client_s_tools_are_called_by_it() {
    block_on(async {
        let call =
            ScriptedAnswer::new()
                .text("Let me look.")
                .call("toolu_1", "get_weather", r#"{"city": "Kyiv"}"#);
        let (server, provider) = scripted([call, says("Sunny.")]).await;
        let tools = json!([{"name": "get_weather", "description": "d", "input_schema": {"type": "object"}}]);
        let choice = json!({"type": "tool", "name": "get_weather", "disable_parallel_tool_use": true});
        let first = ask(&server, json!({"tools": tools, "tool_choice": choice})).await;
        assert_eq!(first["stop_reason"], "tool_use");
        assert_eq!(kinds(&first), ["text", "tool_use"]);
        assert_eq!(
            first["content"][1],
            json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Kyiv"},
                   "caller": {"type": "direct"}})
        );
        let asked = &provider.asked()[0];
        assert!(!asked.parallel_tool_calls);
        assert_eq!(
            json!(asked.tool_choice),
            json!({"type": "function", "name": "get_weather"})
        );
        let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true,
                             "content": [{"type": "text", "text": "21"}]},
                             {"type": "text", "text": "Well?"}]);
        let messages = after(&first, &result);
        ask(&server, json!({"tools": tools, "messages": messages})).await;
        let items = json!(provider.asked()[1].items);
        assert_eq!(items[3]["type"], "function_call_output");
        assert!(items[3].to_string().contains("the tool failed"), "{items}");
        assert_eq!(items[4]["content"][0]["text"], "Well?");
    });
}

#[test]
fn an_answer_says_why_it_ends() {
    block_on(async {
        let fails = ScriptedAnswer::new().text("ha").fails(ProviderError::Cut);
        let (server, _) = scripted([
            ScriptedAnswer::new().fails(ProviderError::Cut),
            fails,
            runs("c1", "1"),
        ])
        .await;
        let refused = server.post("messages", &super::body(&json!({}))).await;
        assert_eq!(refused.status, 500);
        assert_eq!(refused.body["error"]["type"], "api_error", "{}", refused.body);
        let events = stream(&server, json!({})).await;
        let last = events.last().unwrap();
        assert_eq!(
            (&last["type"], &last["error"]["type"]),
            (&json!("error"), &json!("api_error")),
            "{events:?}"
        );
    });
}

#[test]
fn a_turn_with_too_many_steps_is_paused_and_goes_on() {
    use cellblock_agent::provider::Provider;
    use cellblock_agent::provider::scripted::ScriptedProvider;
    use std::sync::Arc;

    block_on(async {
        let answers = [
            runs("c1", "1"),
            says("1."),
            ScriptedAnswer::new().call("c2", "bash_code_execution", r#"{"command": "exit 3"}"#),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = crate::support::serve_with(model, |options| options.turn.max_steps = 1).await;
        let tools = json!([tool("20250522")]);
        let first = ask(&server, json!({ "tools": tools })).await;
        assert_eq!(first["stop_reason"], "pause_turn", "{first}");
        let mut messages = user("go");
        let so_far = json!({"role": "assistant", "content": first["content"]});
        messages.as_array_mut().unwrap().push(so_far);
        let second = ask(&server, json!({"tools": tools, "messages": messages})).await;
        assert_eq!(
            (&second["stop_reason"], &second["content"][0]["text"]),
            (&json!("end_turn"), &json!("1."))
        );
        // Nothing is said in the model's place.
        let third = ask(&server, json!({"tools": [tool("20250825")]})).await;
        assert_eq!(third["stop_reason"], "pause_turn", "{third}");
        assert_eq!(
            kinds(&third),
            ["server_tool_use", "bash_code_execution_tool_result"],
            "{third}"
        );
        assert_eq!(third["content"][1]["content"]["return_code"], 3, "{third}");
    });
}
