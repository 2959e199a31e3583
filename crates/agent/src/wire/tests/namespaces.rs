//! Functions in namespaces: what is read of them, what a choice names, and what is wrong.

use serde_json::{Value, json};

use super::parse;
use crate::wire::{Response, ToolChoice, ToolName};

fn namespace(name: &str, functions: &[&str]) -> Value {
    let function = |name: &&str| {
        json!({"type": "function", "name": name, "description": null,
        "parameters": {"type": "object"}, "strict": false})
    };
    let functions: Vec<_> = functions.iter().map(function).collect();
    json!({"type": "namespace", "name": name, "description": "d", "tools": functions})
}

#[test]
fn a_namespace_is_returned_unchanged() {
    let tools = json!([namespace("crm", &["find", "add"]), {"type": "function", "name": "find"}]);
    let mut sent = tools.clone();
    // What nobody here knows is ignored.
    sent[0]["tools"][0]["since"] = json!(1);
    let request = parse(&json!({"model": "m", "input": "x", "tools": sent})).unwrap();
    let response = json!(Response::new(&request, "resp_1".to_owned(), 1));
    assert_eq!(response["tools"][0], tools[0]);
}

#[test]
fn a_call_in_a_namespace_round_trips() {
    let items = json!([
        {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c1", "name": "find",
            "namespace": "crm",
         "arguments": "{}"},
        {"type": "function_call_output", "id": "fco_1", "status": "completed", "call_id": "c1",
            "output": "ok"},
    ]);
    let request = parse(&json!({"model": "m", "input": items})).unwrap();
    assert_eq!(json!(request.input), items);
}

#[test]
fn a_choice_names_a_function_with_its_namespace_or_without_where_it_is_the_only_one() {
    let tools = json!([
        namespace("crm", &["find", "add"]), namespace("shop", &["find", "buy"]),
        {"type": "function", "name": "buy"},
    ]);
    let chosen = |choice: Value| {
        let body = json!({"model": "m", "input": "x", "tools": tools, "tool_choice": choice});
        parse(&body).map(|request| request.tool_choice)
    };
    let named = |namespace: Option<&str>, name: &str| {
        ToolChoice::Tool(ToolName::Function {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        })
    };
    let function = |name: &str| json!({"type": "function", "name": name});
    let within =
        |namespace: &str, name: &str| json!({"type": "function", "namespace": namespace, "name": name});
    assert_eq!(chosen(within("shop", "find")), Ok(named(Some("shop"), "find")));
    assert_eq!(chosen(function("add")), Ok(named(Some("crm"), "add")));
    // One that stands in no namespace goes first.
    assert_eq!(chosen(function("buy")), Ok(named(None, "buy")));
    let unclear = chosen(function("find")).unwrap_err();
    assert_eq!(unclear.param.as_deref(), Some("tool_choice.name"));
    assert_eq!(
        unclear.message,
        "`tool_choice.name` names a function of `crm` and one of `shop`: say `namespace` too"
    );
    let allowed = json!({"type": "allowed_tools", "tools": [function("add"), within("crm", "buy")]});
    let missing = chosen(allowed).unwrap_err();
    assert_eq!(missing.param.as_deref(), Some("tool_choice.tools[1].name"));
    assert_eq!(
        missing.message,
        "`tool_choice.tools[1].name` names a tool that is not in `tools`, or that only code can call"
    );
}

#[test]
fn a_choice_of_a_custom_tool_names_its_namespace_like_that_of_a_function() {
    let custom = |name: &str| json!({"type": "custom", "name": name});
    let namespace = |name: &str, tools: &[&str]| {
        let tools: Vec<_> = tools.iter().map(|tool| custom(tool)).collect();
        json!({"type": "namespace", "name": name, "description": "d", "tools": tools})
    };
    let tools = json!([
        namespace("crm", &["find", "buy"]),
        namespace("shop", &["find"]),
        custom("buy")
    ]);
    let chosen = |name: &str| {
        let body = json!({"model": "m", "input": "x", "tools": tools, "tool_choice": custom(name)});
        parse(&body).map(|request| request.tool_choice)
    };
    let buy = ToolName::Custom {
        name: "buy".to_owned(),
        namespace: None,
    };
    assert_eq!(chosen("buy"), Ok(ToolChoice::Tool(buy)));
    assert_eq!(
        chosen("find").unwrap_err().message,
        "`tool_choice.name` names a custom tool of `crm` and one of `shop`: say `namespace` too"
    );
}

#[test]
fn errors_in_a_namespace_name_the_parameter() {
    let crm = namespace("crm", &["find"]);
    let mut unsaid = crm.clone();
    unsaid["description"] = Value::Null;
    let mut hosted = crm.clone();
    hosted["tools"][0] = json!({"type": "web_search"});
    let many: Vec<_> = (0..128).map(|number| format!("f{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let cases = [
        (json!([namespace("crm", &[])]), "tools[0].tools", "invalid_value"),
        (
            json!([namespace("c.rm", &["find"])]),
            "tools[0].name",
            "invalid_value",
        ),
        (
            json!([unsaid]),
            "tools[0].description",
            "missing_required_parameter",
        ),
        (json!([crm, crm]), "tools[1]", "invalid_value"),
        (
            json!([namespace("crm", &["find", "find"])]),
            "tools[0].tools[1]",
            "invalid_value",
        ),
        (
            json!([namespace("crm", &["a b"])]),
            "tools[0].tools[0].name",
            "invalid_value",
        ),
        (json!([hosted]), "tools[0].tools[0].type", "invalid_value"),
        (
            json!([namespace("crm", &many), {"type": "function", "name": "f"}]),
            "tools",
            "array_above_max_length",
        ),
    ];
    for (tools, param, code) in cases {
        let error = parse(&json!({"model": "m", "input": "x", "tools": tools})).unwrap_err();
        assert_eq!(
            (error.param.as_deref(), error.code.as_deref()),
            (Some(param), Some(code)),
            "{error}"
        );
    }
    assert!(parse(&json!({"model": "m", "input": "x", "tools": [namespace("crm", &many)]})).is_ok());
}

#[test]
fn an_unsupported_hosted_tool_is_rejected_with_a_fix() {
    let tools = json!([namespace("crm", &["find"]), {"type": "web_search", "external_web_access": false}]);
    let error = parse(&json!({"model": "m", "input": "x", "tools": tools})).unwrap_err();
    assert_eq!(
        error.message,
        "`tools[1].type` is `web_search`; it can be `function`, `namespace`, `tool_search`, \
         `code_interpreter`, `shell`, `apply_patch`, `custom`, `programmatic_tool_calling` or `mcp`; this \
         server has no other tools, so leave it out"
    );
}

#[test]
fn a_server_cannot_have_the_label_of_code() {
    let tools =
        json!([{"type": "mcp", "server_label": "code_interpreter", "server_url": "https://a.example"}]);
    let error = parse(&json!({"model": "m", "input": "x", "tools": tools})).unwrap_err();
    assert!(error.message.contains("choose another label"), "{error}");
}
