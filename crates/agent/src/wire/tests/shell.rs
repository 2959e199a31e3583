//! Commands of a shell: what is read of them, and drafts that clients can follow.

use serde_json::{Value, json};

use super::{parse, response};
use crate::wire::order::Order;
use crate::wire::{
    CustomCall, Draft, ItemStatus, PatchCall, PatchOperation, Response, ShellAction, ShellCall, ShellDelta,
    ShellOutcome, ShellOutput, ShellPlace, StreamEvent, TokenUsage, network_param,
};

fn call(number: usize, commands: &[&str]) -> ShellCall {
    ShellCall {
        id: format!("sh_{number}"),
        status: ItemStatus::Completed,
        call_id: format!("c{number}"),
        action: ShellAction {
            commands: commands.iter().map(|&command| command.to_owned()).collect(),
            timeout_ms: None,
            max_output_length: Some(100),
        },
        environment: Some(ShellPlace::ContainerReference {
            container_id: "cntr_1".to_owned(),
        }),
    }
}

fn output(stdout: &str, exit_code: i32) -> ShellOutput {
    ShellOutput {
        stdout: stdout.to_owned(),
        stderr: String::new(),
        outcome: ShellOutcome::Exit { exit_code },
    }
}

fn wrote(text: &str) -> ShellDelta {
    ShellDelta {
        stdout: Some(text.to_owned()),
        stderr: None,
    }
}

fn checked(events: &[StreamEvent]) -> Vec<Value> {
    let told: Vec<_> = events.iter().map(|event| json!(event)).collect();
    Order::check(&told).unwrap();
    told
}

#[test]
fn outputs_of_commands_may_mix() {
    let mut draft = Draft::begin(response());
    let call = call(1, &["one", "two"]);
    draft.whole_shell_call(call.clone());
    let mut slot = draft.shell_output("sho_1".to_owned(), &call);
    draft.shell_wrote(&slot, 1, wrote("b"));
    draft.shell_wrote(&slot, 0, wrote("a"));
    draft.end_shell_command(&mut slot, 1, output("b", 2));
    draft.shell_wrote(&slot, 1, wrote("too late"));
    draft.shell_wrote(&slot, 0, wrote("c"));
    draft.end_shell(slot, &[output("ac", 0), output("other", 9)], "");
    let mut events = draft.take();
    let (response, last) = draft.complete(TokenUsage::default(), 1);
    events.extend(last);
    let told = checked(&events);
    let command = told
        .iter()
        .find(|event| event["type"] == "response.shell_call_command.done");
    assert_eq!(
        command.unwrap(),
        &json!({"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0,
                "command": "one", "sequence_number": 5})
    );
    let delta = told
        .iter()
        .find(|event| event["type"] == "response.shell_call_output_content.delta");
    assert_eq!(delta.unwrap()["delta"], json!({"stdout": "b"}));
    assert_eq!(
        json!(response.output[1]),
        json!({"type": "shell_call_output", "id": "sho_1", "status": "completed", "call_id": "c1",
               "max_output_length": 100, "output": [output("ac", 0), output("b", 2)]})
    );
    assert_eq!(
        serde_json::from_value::<Response>(json!(response)).unwrap(),
        response
    );
}

#[test]
fn commands_that_are_broken_off_have_timed_out() {
    let mut draft = Draft::begin(response());
    let call = call(1, &["one", "two"]);
    draft.whole_shell_call(call.clone());
    let mut slot = draft.shell_output("sho_1".to_owned(), &call);
    draft.end_shell_command(&mut slot, 0, output("a", 0));
    draft.shell_wrote(&slot, 1, wrote("half"));
    let mut events = draft.take();
    let (response, last) = draft.incomplete("client_gone", TokenUsage::default());
    events.extend(last);
    checked(&events);
    let item = json!(response.output[1]);
    assert_eq!(item["status"], "incomplete");
    assert_eq!(
        item["output"][1],
        json!({"stdout": "half", "stderr": "", "outcome": {"type": "timeout"}})
    );
}

#[test]
fn commands_that_were_not_run_have_the_reason_and_a_code() {
    let mut draft = Draft::begin(response());
    let call = call(1, &["one"]);
    draft.whole_shell_call(call.clone());
    let slot = draft.shell_output("sho_1".to_owned(), &call);
    draft.end_shell(slot, &[], "no sandbox");
    let mut events = draft.take();
    let (response, last) = draft.complete(TokenUsage::default(), 1);
    events.extend(last);
    checked(&events);
    assert_eq!(
        json!(response.output[1])["output"],
        json!([{"stdout": "", "stderr": "no sandbox", "outcome": {"type": "exit", "exit_code": 125}}])
    );
}

#[test]
fn calls_of_the_client_are_written_whole() {
    let mut draft = Draft::begin(response());
    let operation = PatchOperation::CreateFile {
        path: "a".to_owned(),
        diff: "+x".to_owned(),
    };
    draft.whole_patch_call(PatchCall {
        id: "ap_1".to_owned(),
        status: ItemStatus::Completed,
        call_id: "c1".to_owned(),
        operation,
    });
    draft.whole_custom_call(CustomCall {
        id: "ctc_1".to_owned(),
        status: ItemStatus::Completed,
        call_id: "c2".to_owned(),
        name: "plan".to_owned(),
        namespace: None,
        input: "a b".to_owned(),
    });
    let mut events = draft.take();
    events.extend(draft.complete(TokenUsage::default(), 1).1);
    let told = checked(&events);
    let added = told.iter().find(|event| event["item"]["id"] == "ap_1").unwrap();
    assert_eq!(
        added["item"]["operation"],
        json!({"type": "create_file", "path": "a", "diff": ""})
    );
}

fn tools(tools: &Value) -> Result<Value, (Option<String>, Option<String>)> {
    let request = parse(&json!({"model": "m", "input": "x", "tools": tools}));
    let request = request.map_err(|error| (error.param, error.code))?;
    Ok(json!(Response::new(&request, "resp_1".to_owned(), 1))["tools"].clone())
}

#[test]
fn tools_are_returned_with_what_they_stand_for() {
    let shell = |environment: Value| json!({"type": "shell", "environment": environment});
    let auto = shell(json!({"type": "container_auto", "file_ids": ["file_1"], "memory_limit": "1g"}));
    for tool in [
        auto,
        shell(json!({"type": "container_reference", "container_id": "cntr_1"})),
        shell(json!({"type": "local"})),
        json!({"type": "apply_patch", "allowed_callers": ["direct", "programmatic"]}),
        json!({"type": "custom", "name": "plan", "format": {"type": "text"}}),
    ] {
        assert_eq!(tools(&json!([tool])), Ok(json!([tool])));
    }
    // The files of a skill are not repeated.
    let inline = |source: Value| {
        let skill = json!({"type": "inline", "name": "n", "description": "d", "source": source});
        shell(json!({"type": "container_auto", "memory_limit": null, "skills": [skill]}))
    };
    let sent = inline(json!({"type": "base64", "media_type": "application/zip", "data": "UEs="}));
    let returned = inline(json!({"type": "base64", "media_type": "application/zip"}));
    assert_eq!(tools(&json!([sent])), Ok(json!([returned])));
    // Commands without an environment are the client's.
    for tool in [
        json!({"type": "shell"}),
        json!({"type": "shell", "environment": null}),
    ] {
        assert_eq!(
            tools(&json!([tool])),
            Ok(json!([shell(json!({"type": "local"}))]))
        );
    }
}

#[test]
fn tools_that_cannot_be_served_name_the_parameter() {
    let shell = |environment: Value| json!({"type": "shell", "environment": environment});
    let auto = |options: Value| {
        let mut environment = json!({"type": "container_auto"});
        environment
            .as_object_mut()
            .unwrap()
            .extend(options.as_object().unwrap().clone());
        shell(environment)
    };
    let code = |container: Value| json!({"type": "code_interpreter", "container": container});
    let cases = [
        (
            json!([shell(json!({"type": "moon"}))]),
            "tools[0].environment.type",
            "invalid_value",
        ),
        (
            json!([auto(json!({"skills": [{"type": "url"}]}))]),
            "tools[0].environment.skills[0].type",
            "invalid_value",
        ),
        (
            json!([auto(
                json!({"network_policy": {"type": "open", "allowed_domains": ["a"]}})
            )]),
            "tools[0].environment.network_policy.type",
            "invalid_value",
        ),
        (
            json!([auto(json!({"memory_limit": "2g"}))]),
            "tools[0].environment.memory_limit",
            "invalid_value",
        ),
        (
            json!([{"type": "shell", "allowed_callers": ["programmatic"]}]),
            "tools[0].allowed_callers",
            "unsupported_parameter",
        ),
        (
            json!([
                code(json!("cntr_1")),
                shell(json!({"type": "container_reference", "container_id": "cntr_2"}))
            ]),
            "tools[1]",
            "invalid_value",
        ),
        (
            json!([code(json!("cntr_1")), auto(json!({"memory_limit": "1g"}))]),
            "tools[1]",
            "invalid_value",
        ),
        (
            json!([{"type": "custom", "name": "p",
                    "format": {"type": "grammar", "syntax": "ebnf", "definition": "x"}}]),
            "tools[0].format.syntax",
            "invalid_value",
        ),
        (
            json!([{"type": "custom", "name": "p", "async": true}]),
            "tools[0].async",
            "unsupported_parameter",
        ),
    ];
    for (sent, param, code) in cases {
        let told = tools(&sent).unwrap_err();
        assert_eq!(told, (Some(param.to_owned()), Some(code.to_owned())));
    }
    let shared = json!([code(json!("cntr_1")), auto(json!({}))]);
    assert!(tools(&shared).is_ok());
}

#[test]
fn a_tool_without_a_network_shares_no_container_with_one_that_has_hosts() {
    let hosts = json!({"type": "allowlist", "allowed_domains": ["a.example"]});
    let both = |code: &Value, shell: &Value| {
        tools(&json!([
            {"type": "code_interpreter", "container": {"type": "auto", "network_policy": code}},
            {"type": "shell", "environment": {"type": "container_auto", "network_policy": shell}},
        ]))
    };
    let disabled = json!({"type": "disabled"});
    let conflict = Err((Some("tools[1]".to_owned()), Some("invalid_value".to_owned())));
    assert_eq!(both(&disabled, &hosts), conflict);
    assert_eq!(both(&hosts, &disabled), conflict);
    for (code, shell) in [
        (&disabled, &disabled),
        (&disabled, &Value::Null),
        (&Value::Null, &hosts),
    ] {
        assert!(both(code, shell).is_ok(), "{code} {shell}");
    }
}

#[test]
fn the_parameter_of_a_network_is_that_of_the_tool_which_has_it() {
    let tools = json!([
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "shell", "environment": {"type": "container_auto", "network_policy": {
            "type": "allowlist", "allowed_domains": ["a.example"]}}},
    ]);
    let request = parse(&json!({"model": "m", "input": "x", "tools": tools})).unwrap();
    let param = network_param(&request.tools);
    assert_eq!(param.as_deref(), Some("tools[1].environment.network_policy"));
    assert_eq!(network_param(&request.tools[..1]), None);
}

#[test]
fn items_of_clients_are_read_with_what_only_they_have() {
    let input = json!([
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]},
         "environment": {"type": "local", "skills": []}},
        {"type": "shell_call_output", "call_id": "c1", "status": "failed", "shell_output": "x",
         "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": -1}}]},
        {"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file", "path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "c3", "name": "plan", "input": ""},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "ok"},
    ]);
    let request = parse(&json!({"model": "m", "input": input})).unwrap();
    let items: Vec<_> = request
        .input
        .iter()
        .map(|item| json!(item.clone().into_function()))
        .collect();
    let names: Vec<_> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    assert_eq!(names, ["shell", "apply_patch", "plan"]);
    let outputs: Vec<_> = items.iter().filter_map(|item| item["output"].as_str()).collect();
    assert_eq!(outputs, ["a\n[exit code] -1", "The patch was applied.", "ok"]);
    assert_eq!(items[0]["arguments"], "{\"commands\":[\"ls\"]}");
    assert_eq!(json!(request.input[1])["status"], "completed");
    assert_eq!(json!(request.input[0])["environment"], json!({"type": "local"}));
}
