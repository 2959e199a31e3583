//! Messages: requests that are read, and the events of answers.

use serde_json::{Value, json};

use super::{ContainerReport, MessageEvents, error, frame, whole};
use crate::wire::call_report::{CallFault, CallReport};
use crate::wire::draft::Draft;
use crate::wire::item::{Item, ItemStatus};
use crate::wire::response::{Response, TokenUsage};
use crate::wire::{ApiError, Ids, MessagesRequest, StreamEvent};

fn read(fields: &Value) -> Result<MessagesRequest, ApiError> {
    let mut body = json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "go"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    MessagesRequest::parse(body.to_string().as_bytes(), &mut Ids::counted())
}

fn python() -> Value {
    json!([{"type": "code_execution_20260120", "name": "code_execution"}])
}

/// The events of an answer that a draft writes.
fn told(request: &MessagesRequest, write: impl FnOnce(Draft) -> Vec<StreamEvent>) -> Vec<Value> {
    let lookup = Box::new(|id: &str| ContainerReport {
        expires_at: format!("{id} expires"),
        skills: Vec::new(),
    });
    let mut events = MessageEvents::new("msg_1".to_owned(), request, lookup);
    let response = Response::new(&request.request, "resp_1".to_owned(), 0);
    let written = write(Draft::begin(response)).into_iter();
    written.flat_map(|event| events.take(event.kind)).collect()
}

fn complete(mut draft: Draft) -> Vec<StreamEvent> {
    let mut events = draft.take();
    events.extend(draft.complete(TokenUsage::default(), 0).1);
    events
}

fn names(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| match event["type"].as_str().unwrap() {
        "content_block_start" => format!("+{}", event["content_block"]["type"].as_str().unwrap()),
        "content_block_delta" => event["delta"]["type"].as_str().unwrap().to_owned(),
        "content_block_stop" => "-".to_owned(),
        other => other.to_owned(),
    };
    events.iter().map(name).collect()
}

#[test]
fn code_that_waits_is_ended_only_in_the_message_in_which_it_ends() {
    let content = json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": {"code": "f()"}},
                         {"type": "tool_use", "id": "c1", "name": "f", "input": {},
                          "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}]);
    let answer = json!([{"type": "tool_result", "tool_use_id": "c1", "content": "7"}]);
    let messages = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": content},
                          {"role": "user", "content": answer}]);
    let request = read(&json!({"tools": python(), "messages": messages, "container": "cntr_1"})).unwrap();
    assert_eq!(request.waiting, ["ci_1"]);
    let call = request.request.input.iter().find_map(|item| match item {
        Item::CodeInterpreterCall(call) => Some(call.clone()),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(
        (&*call.container_id, call.status),
        ("cntr_1", ItemStatus::Interpreting)
    );

    let events = told(&request, |mut draft| {
        let slot = draft.resume_interpreter(call);
        let report = CallReport {
            stdout: "7\n".to_owned(),
            files: vec!["cfile_1".to_owned()],
            ..CallReport::default()
        };
        draft.report_run(&slot, report);
        draft.end_interpreter(slot, ItemStatus::Completed, None);
        complete(draft)
    });
    assert_eq!(
        names(&events),
        [
            "message_start",
            "+code_execution_tool_result",
            "-",
            "message_delta",
            "message_stop"
        ]
    );
    let message = whole(events).unwrap();
    assert_eq!(
        message["content"][0],
        json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {
            "type": "code_execution_result", "stdout": "7\n", "stderr": "", "return_code": 0,
            "content": [{"type": "code_execution_output", "file_id": "cfile_1"}],
        }})
    );
    assert_eq!(
        message["container"],
        json!({"id": "cntr_1", "expires_at": "cntr_1 expires", "skills": null})
    );
}

#[test]
fn blocks_do_not_overlap_whatever_is_written_at_once() {
    let request = read(&json!({"tools": python()})).unwrap();
    let events = told(&request, |mut draft| {
        let one = draft.interpreter("ci_1".to_owned(), "cntr_1".to_owned());
        let two = draft.interpreter("ci_2".to_owned(), "cntr_1".to_owned());
        draft.code(&one, "a\"");
        draft.code(&two, "b");
        draft.code(&one, "\n");
        let late = CallReport {
            failure: Some(CallFault::TimedOut),
            ..CallReport::default()
        };
        draft.report_run(&one, late);
        draft.end_interpreter(one, ItemStatus::Incomplete, None);
        draft.end_interpreter(two, ItemStatus::Completed, None);
        complete(draft)
    });
    let message = whole(events.clone()).unwrap();
    let kinds: Vec<_> = names(&events)
        .into_iter()
        .filter(|name| name.starts_with(['+', '-']))
        .collect();
    let used = ["+server_tool_use", "-"];
    let result = ["+code_execution_tool_result", "-"];
    assert_eq!(kinds, [used, used, result, result].concat());
    assert_eq!(message["content"][0]["input"], json!({"code": "a\"\n"}));
    assert_eq!(message["content"][1]["input"], json!({"code": "b"}));
    assert_eq!(
        message["content"][2]["content"],
        json!({"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"})
    );
    // A run without a report was none.
    assert_eq!(message["content"][3]["content"]["error_code"], "unavailable");
}

#[test]
fn thinking_has_its_signature_and_only_clients_that_ask_see_it() {
    let write = |mut draft: Draft| {
        let slot = draft.reasoning("rs_1".to_owned());
        draft.think(&slot, "hm");
        draft.seal(&slot, "sealed".to_owned());
        draft.end_reasoning(slot);
        complete(draft)
    };
    let asks = read(&json!({"thinking": {"type": "adaptive"}})).unwrap();
    let message = whole(told(&asks, write)).unwrap();
    assert_eq!(
        message["content"],
        json!([{"type": "thinking", "thinking": "hm", "signature": "sealed"}])
    );
    let message = whole(told(&read(&json!({})).unwrap(), write)).unwrap();
    assert_eq!(message["content"], json!([]));
    let back = json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm",
        "signature": "sealed"}]}]);
    let back = read(&json!({ "messages": back })).unwrap();
    assert_eq!(json!(back.request.input[0])["encrypted_content"], "sealed");
}

#[test]
fn an_answer_that_is_cut_off_says_how() {
    let request = read(&json!({})).unwrap();
    for (why, reason) in [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("max_steps", "pause_turn"),
    ] {
        let message = whole(told(&request, |draft| {
            let mut draft = draft;
            let mut events = draft.take();
            events.extend(draft.incomplete(why, TokenUsage::default()).1);
            events
        }));
        assert_eq!(message.unwrap()["stop_reason"], reason);
    }
    let events = told(&request, |mut draft| {
        let slot = draft.message("msg_1".to_owned());
        draft.text(&slot, "ha");
        let mut events = draft.take();
        let error = ApiError::invalid("x", "invalid_value", "no");
        events.extend(draft.fail(error, None).1);
        events
    });
    let last = events.last().unwrap();
    assert_eq!(frame(last).lines().next(), Some("event: error"), "{events:?}");
    assert_eq!(
        last["error"],
        json!({"type": "invalid_request_error", "message": "no"})
    );
    assert!(whole(events).is_none());
}

#[test]
fn cached_tokens_are_counted_separately() {
    let mut usage = TokenUsage {
        input_tokens: 100,
        output_tokens: 7,
        ..TokenUsage::default()
    };
    usage.input_tokens_details.cached_tokens = 60;
    let request = read(&json!({})).unwrap();
    let message = whole(told(&request, |mut draft| {
        let mut events = draft.take();
        events.extend(draft.complete(usage, 0).1);
        events
    }));
    assert_eq!(
        message.unwrap()["usage"],
        json!({"input_tokens": 40, "output_tokens": 7, "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 0})
    );
}

#[test]
fn each_status_has_the_error_type_of_its_sdk_exception() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
    ] {
        assert_eq!(error(status, "m", None)["error"]["type"], kind, "{status}");
    }
}

#[test]
fn a_schema_and_an_effort_are_passed_on() {
    let settings = json!({"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}});
    let request = read(&json!({"output_config": settings})).unwrap().request;
    assert_eq!(request.reasoning.effort.as_deref(), Some("low"));
    assert_eq!(json!(request.text)["format"]["schema"], json!({"type": "object"}));
}
