//! Requests: what SDKs send is read, and what is wrong is named.

use serde_json::{Value, json};

use super::parse;
use crate::wire::{
    ApiError, AutoContainer, ChoiceMode, Container, Ids, Item, Part, Response, ResponseRequest, Tool,
    ToolChoice, ToolName,
};

#[test]
fn a_text_is_a_message_of_the_user_and_the_rest_has_defaults() {
    let request = parse(&json!({"model": "m", "input": "hi"})).unwrap();
    let text = "hi".to_owned();
    assert_eq!(
        json!(request.input),
        json!([{
            "type": "message", "id": "msg_1", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }])
    );
    assert!(request.store && request.parallel_tool_calls && !request.stream && !request.background);
    assert_eq!(request.tool_choice, ToolChoice::Mode(ChoiceMode::Auto));
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(response); });
}

#[test]
fn what_sdks_send_is_read_and_what_nobody_knows_is_ignored() {
    let request = parse(&json!({
        "model": "m",
        "input": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                {"type": "input_file", "file_id": "file-1"},
            ]},
            {"type": "message", "role": "assistant", "phase": "commentary", "content": "well"},
        ],
        "tools": [
            {"type": "function", "name": "get_weather", "parameters": {"type": "object"}},
            {"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "1g",
                "network_policy": {"type": "disabled"}}},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "code_interpreter"}]},
        "include": ["code_interpreter_call.outputs", "of.tomorrow"],
        "metadata": {"run": "7"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}},
            "verbosity": "low"},
        "reasoning": {"effort": "low"},
        "truncation": "auto",
        "max_output_tokens": 64, "max_tool_calls": 3, "top_logprobs": 2, "temperature": 0.5,
        "conversation": null, "prompt_cache_options": {"of": "tomorrow"}, "stream_options": {},
    }))
    .unwrap();
    assert!(request.includes_outputs());
    assert_eq!(request.max_tool_calls, Some(3));
    let container = Container::Auto(AutoContainer {
        memory_limit: Some("1g".to_owned()),
        no_network: true,
        ..AutoContainer::default()
    });
    assert_eq!(request.tools[1], Tool::CodeInterpreter { container });
    let ToolChoice::Allowed { tools, .. } = &request.tool_choice else {
        panic!("{:?}", request.tool_choice);
    };
    assert_eq!(*tools, [ToolName::CodeInterpreter]);
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(json!({
        "input": request.input, "tools": request.tools, "tool_choice": request.tool_choice,
        "text": request.text,
    })); });
}

#[test]
fn items_of_a_response_can_be_sent_back_unchanged() {
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "status": "completed",
            "summary": [{"type": "summary_text", "text": "s"}],
         "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "x"},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "failed", "container_id": "cntr_1",
            "code": "1",
         "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": "data:"}]},
        {"type": "code_interpreter_call", "id": "ci_2", "status": "incomplete", "container_id": "cntr_1",
            "code": null,
         "outputs": null},
        {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c1", "name": "f",
            "arguments": "{"},
        {"type": "function_call_output", "id": "fco_1", "status": "completed", "call_id": "c1",
            "output": "ok"},
        {"type": "function_call_output", "id": "fco_2", "status": "completed", "call_id": "c1",
         "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [
            {"type": "output_text", "text": "see a.csv", "logprobs": [], "annotations": [
                {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "a.csv",
                 "start_index": 4, "end_index": 9},
                {"type": "url_citation", "url": "u"},
            ]},
            {"type": "refusal", "refusal": "no"},
        ]},
    ]);
    let request = parse(&json!({"model": "m", "input": items})).unwrap();
    assert_eq!(json!(request.input), items);
    assert_eq!(serde_json::from_value::<Vec<Item>>(items).unwrap(), request.input);
}

#[test]
fn an_item_of_the_interpreter_needs_neither_status_nor_outputs() {
    let item = json!({"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1", "code": "1"});
    let request = parse(&json!({"model": "m", "input": [item]})).unwrap();
    assert_eq!(
        json!(request.input),
        json!([{"type": "code_interpreter_call", "id": "ci_1", "status": "completed",
            "container_id": "cntr_1",
                "code": "1", "outputs": null}])
    );
}

#[test]
fn a_text_of_the_assistant_is_one_of_the_model() {
    let input = json!([{"role": "assistant", "content": "a"}]);
    let request = parse(&json!({"model": "m", "input": input})).unwrap();
    let Item::Message(message) = &request.input[0] else {
        panic!()
    };
    assert_eq!(message.content, [Part::output_text("a")]);
}

#[test]
fn settings_among_the_items_are_those_of_the_request() {
    let request = parse(&json!({
        "model": "m",
        "reasoning": {"effort": "low", "mode": "pro", "context": "all_turns"},
        "input": [
            {"type": "configuration_update", "reasoning": {"effort": "high"}},
            {"role": "user", "content": "one"},
            {"type": "configuration_update", "text": {"format": {"type": "json_object"}}},
            {"type": "compaction_trigger", "id": "x"},
        ],
        "context_management": [{"type": "compaction", "compact_threshold": 5000}],
    }))
    .unwrap();
    assert_eq!(request.input.len(), 1);
    assert!(request.compaction.now);
    assert_eq!(request.compaction.threshold, Some(5000));
    assert_eq!(json!(request.text.format), json!({"type": "json_object"}));
    assert_eq!(
        json!(request.reasoning),
        json!({"effort": "high", "summary": null, "context": "all_turns", "mode": "pro"})
    );
}

#[test]
fn hints_are_checked_and_those_for_a_cache_are_repeated() {
    let request = parse(&json!({
        "model": "m", "input": "x", "background": true, "prompt_cache_retention": "24h",
        "prompt_cache_options": {"ttl": "12h", "comparison_response_id": "resp_0"},
        "background_options": {"completion_window": "8h", "continuation_id": "c"},
        "access_programs": {"cyber": "standard"}, "image": {"context_compression": "auto"},
        "moderation": {"model": "o", "policy": {"input": {"mode": "score"}, "output": null}},
    }))
    .unwrap();
    assert!(!request.prompt_cache.prewarms());
    let response = json!(Response::new(&request, "resp_1".to_owned(), 1));
    assert_eq!(response["prompt_cache_retention"], "24h");
    assert_eq!(
        response["prompt_cache_options"],
        json!({"mode": "implicit", "ttl": "12h"})
    );
    let prewarm = json!({"model": "m", "input": "x", "prompt_cache_options": {"prewarm": true}});
    assert!(parse(&prewarm).unwrap().prompt_cache.prewarms());
}

#[test]
fn what_is_known_and_not_served_is_rejected_by_its_name() {
    let block = json!({"model": "o", "policy": {"output": {"mode": "block"}}});
    let item = |kind: &str| json!({"input": [{"type": kind}, {"role": "user", "content": "x"}]});
    for (change, code, param) in [
        (
            json!({"moderation": block}),
            "unsupported_parameter",
            "moderation.policy.output.mode",
        ),
        (item("additional_tools"), "unsupported_parameter", "input[0].type"),
        (
            item("computer_call_output"),
            "unsupported_parameter",
            "input[0].type",
        ),
        (
            item("compaction_trigger"),
            "unsupported_parameter",
            "input[0].type",
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "async": true}]}),
            "unsupported_parameter",
            "tools[0].async",
        ),
        (
            json!({"background": true, "stream": true, "background_options": {"completion_window": "2h"}}),
            "invalid_value",
            "background_options.completion_window",
        ),
        (
            json!({"context_management": [{"type": "compaction", "compact_threshold": 999}]}),
            "invalid_value",
            "context_management[0].compact_threshold",
        ),
        (
            json!({"context_management": [{"type": "clearing"}]}),
            "invalid_value",
            "context_management[0].type",
        ),
        (
            json!({"context_management": [{"type": "compaction"}, {"type": "compaction"}]}),
            "array_above_max_length",
            "context_management",
        ),
        (
            json!({"prompt_cache_options": {"ttl": "1h"}}),
            "invalid_value",
            "prompt_cache_options.ttl",
        ),
        (
            json!({"prompt_cache_retention": 24}),
            "invalid_type",
            "prompt_cache_retention",
        ),
        (json!({"image": "small"}), "invalid_type", "image"),
    ] {
        let error = refused(&change);
        assert_eq!(
            (error.code.as_deref(), error.param.as_deref()),
            (Some(code), Some(param)),
            "{change}"
        );
    }
}

fn refused(change: &Value) -> ApiError {
    let mut body = json!({"model": "m", "input": "x"});
    for (key, value) in change.as_object().unwrap() {
        body[key] = value.clone();
    }
    parse(&body).unwrap_err()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line for each mistake")]
fn errors_name_the_parameter() {
    let function = json!({"type": "function", "name": "f"});
    let container =
        |container: Value| json!({"tools": [{"type": "code_interpreter", "container": container}]});
    let long = "x".repeat(65);
    let cases = [
        (json!({"model": null}), "model", "missing_required_parameter"),
        (json!({"model": 1}), "model", "invalid_type"),
        (json!({"input": null}), "input", "missing_required_parameter"),
        (json!({"input": 1}), "input", "invalid_type"),
        (json!({"input": [1]}), "input[0]", "invalid_type"),
        (
            json!({"input": [{"role": "user"}]}),
            "input[0].content",
            "missing_required_parameter",
        ),
        (
            json!({"input": [{}]}),
            "input[0].type",
            "missing_required_parameter",
        ),
        (
            json!({"input": [{"type": "acme:x"}]}),
            "input[0].type",
            "invalid_value",
        ),
        (
            json!({"input": [{"role": "robot", "content": ""}]}),
            "input[0].role",
            "invalid_value",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "smell"}]}]}),
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
            "input[0].content[0].image_url",
            "missing_required_parameter",
        ),
        (
            json!({"input": [{"type": "function_call_output", "call_id": long, "output": ""}]}),
            "input[0].call_id",
            "invalid_value",
        ),
        (
            json!({"input": [{"type": "code_interpreter_call", "code": "1"}]}),
            "input[0].container_id",
            "missing_required_parameter",
        ),
        (json!({"tools": {}}), "tools", "invalid_type"),
        (
            json!({"tools": [{"type": "web_search"}]}),
            "tools[0].type",
            "invalid_value",
        ),
        (
            json!({"tools": [{"type": "function", "name": "a b"}]}),
            "tools[0].name",
            "invalid_value",
        ),
        (
            json!({"tools": [function, function]}),
            "tools[1]",
            "invalid_value",
        ),
        (
            json!({"tools": [{"type": "code_interpreter"}]}),
            "tools[0].container",
            "missing_required_parameter",
        ),
        (
            container(json!({"type": "best"})),
            "tools[0].container.type",
            "invalid_value",
        ),
        (
            container(json!({"type": "auto", "memory_limit": "2g"})),
            "tools[0].container.memory_limit",
            "invalid_value",
        ),
        (
            container(
                json!({"type": "auto", "network_policy": {"type": "allowlist", "allowed_domains": ["a:b"]}}),
            ),
            "tools[0].container.network_policy.allowed_domains[0]",
            "invalid_value",
        ),
        (json!({"tool_choice": "required"}), "tool_choice", "invalid_value"),
        (json!({"tool_choice": "must"}), "tool_choice", "invalid_value"),
        (
            json!({"tool_choice": {"type": "function", "name": "g"}, "tools": [function]}),
            "tool_choice.name",
            "invalid_value",
        ),
        (
            json!({"tool_choice": {"type": "allowed_tools", "tools": [{"type": "code_interpreter"}]}}),
            "tool_choice.tools[0].type",
            "invalid_value",
        ),
        (json!({"include": "all"}), "include", "invalid_type"),
        (json!({"include": [1]}), "include[0]", "invalid_type"),
        (json!({"metadata": {"a": 1}}), "metadata.a", "invalid_type"),
        (
            json!({"metadata": {long.clone(): ""}}),
            &format!("metadata.{long}"),
            "string_above_max_length",
        ),
        (json!({"temperature": 2.5}), "temperature", "invalid_value"),
        (json!({"top_p": "1"}), "top_p", "invalid_type"),
        (json!({"top_logprobs": 21}), "top_logprobs", "invalid_value"),
        (json!({"top_logprobs": 1.5}), "top_logprobs", "invalid_type"),
        (
            json!({"max_output_tokens": 0}),
            "max_output_tokens",
            "invalid_value",
        ),
        (json!({"max_tool_calls": -1}), "max_tool_calls", "invalid_type"),
        (json!({"stream": "yes"}), "stream", "invalid_type"),
        (json!({"truncation": "some"}), "truncation", "invalid_value"),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "a"}}}),
            "text.format.schema",
            "missing_required_parameter",
        ),
        (
            json!({"text": {"format": {"type": "xml"}}}),
            "text.format.type",
            "invalid_value",
        ),
        (
            json!({"background": true, "store": false}),
            "background",
            "invalid_value",
        ),
    ];
    for (change, param, code) in cases {
        let error = refused(&change);
        assert_eq!(
            (error.param.as_deref(), error.code.as_deref()),
            (Some(param), Some(code)),
            "{change}"
        );
        assert!(error.message.contains('`') && error.status() == 400, "{error}");
    }
}

#[test]
fn an_error_has_the_form_that_sdks_read() {
    assert_eq!(
        json!(refused(&json!({"temperature": 3}))),
        json!({"error": {
            "type": "invalid_request_error", "code": "invalid_value", "param": "temperature",
            "message": "`temperature` is out of range: 3 is not from 0 to 2",
        }})
    );
    for (body, code) in [
        ("{", "invalid_json"),
        ("[]", "invalid_type"),
        ("", "invalid_json"),
    ] {
        let error = ResponseRequest::parse(body.as_bytes(), &mut Ids::counted()).unwrap_err();
        assert_eq!(
            (error.param.as_deref(), error.code.as_deref()),
            (None, Some(code)),
            "{body}"
        );
    }
}

#[test]
fn random_ids_have_a_prefix_and_are_never_the_same() {
    let mut ids = Ids::random();
    let (first, second) = (ids.mint("ci"), ids.mint("ci"));
    assert_ne!(first, second);
    assert_eq!(first.len(), 43);
    assert!(first.starts_with("ci_") && first[3..].bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn a_function_cannot_have_the_interpreters_name_beside_it() {
    let function = json!({"type": "function", "name": "code_interpreter"});
    let interpreter = json!({"type": "code_interpreter", "container": {"type": "auto"}});
    let refused = |tools: Value| parse(&json!({"model": "m", "input": "x", "tools": tools})).err();
    for (tools, place) in [
        (json!([function, interpreter]), "tools[0].name"),
        (json!([interpreter, function]), "tools[1].name"),
    ] {
        let error = refused(tools).unwrap();
        assert_eq!(error.param.as_deref(), Some(place));
        assert!(
            error.message.contains("give the function another name"),
            "{}",
            error.message
        );
    }
    assert_eq!(refused(json!([function])), None);
}
