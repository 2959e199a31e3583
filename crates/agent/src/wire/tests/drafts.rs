//! Drafts: whatever is written, clients can follow it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::response;
use crate::wire::order::Order;
use crate::wire::{
    Annotation, ApiError, CallSlot, DONE, Draft, ErrorKind, Ids, InterpreterOutput, InterpreterSlot,
    ItemStatus, ListedTool, McpError, McpListSlot, McpSlot, MessageSlot, ReasoningSlot, Response,
    StreamEvent, TokenUsage,
};

fn json_of(events: &[StreamEvent]) -> Vec<Value> {
    events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect()
}

fn usage() -> TokenUsage {
    TokenUsage {
        input_tokens: 3,
        output_tokens: 4,
        total_tokens: 7,
        ..TokenUsage::default()
    }
}

fn broken() -> ApiError {
    ApiError {
        kind: ErrorKind::ModelError,
        code: None,
        message: "the provider cut the stream".to_owned(),
        param: None,
    }
}

/// A call of the interpreter and an answer that cites what it made.
fn analysis() -> (Response, Vec<StreamEvent>) {
    let mut draft = Draft::begin(response());
    let thought = draft.reasoning("rs_1".to_owned());
    draft.think(&thought, "Sum");
    draft.end_reasoning(thought);
    let call = draft.interpreter("ci_1".to_owned(), "cntr_1".to_owned());
    draft.code(&call, "1 +");
    draft.code(&call, " 1");
    draft.interpret(&call);
    let logs = "2\n".to_owned();
    let url = "data:image/png;base64,AA==".to_owned();
    let outputs = vec![InterpreterOutput::Logs { logs }, InterpreterOutput::Image { url }];
    draft.end_interpreter(call, ItemStatus::Completed, Some(outputs));
    let message = draft.message("msg_1".to_owned());
    draft.text(&message, "It is 2: ");
    draft.text(&message, "sum.csv");
    let citation = Annotation::ContainerFileCitation {
        container_id: "cntr_1".to_owned(),
        file_id: "cfile_1".to_owned(),
        filename: "sum.csv".to_owned(),
        start_index: 9,
        end_index: 16,
    };
    draft.annotate(&message, citation);
    draft.end_message(message);
    let mut events = draft.take();
    assert!(draft.take().is_empty());
    let (response, last) = draft.complete(usage(), 1_700_000_002);
    events.extend(last);
    (response, events)
}

#[test]
fn an_analysis_is_told_in_the_order_that_clients_accept() {
    let (response, events) = analysis();
    let told = json_of(&events);
    Order::check(&told).unwrap();
    let short: Vec<_> = told
        .iter()
        .map(|event| {
            let mut event = event.clone();
            if event.get("response").is_some() {
                event["response"] = json!("…");
            }
            event.sort_all_objects();
            event.to_string()
        })
        .collect();
    insta::assert_snapshot!(short.join("\n"));
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(response); });
    assert_eq!(
        serde_json::from_value::<Response>(json!(response)).unwrap(),
        response
    );
}

#[test]
fn nullable_keys_are_there_from_the_first_event() {
    let (_, events) = analysis();
    let told = json_of(&events);
    let added = told
        .iter()
        .find(|event| event["item"]["type"] == "code_interpreter_call")
        .unwrap();
    assert_eq!(added["item"].get("outputs"), Some(&Value::Null));
    assert_eq!(added["item"]["container_id"], "cntr_1");
    let created = told[0]["response"].as_object().unwrap();
    assert_eq!(created.len(), 31);
    assert_eq!(created["usage"], Value::Null);
}

#[test]
fn a_frame_names_its_event_and_is_one_piece() {
    let (_, events) = analysis();
    let delta = events
        .iter()
        .find(|event| event.frame().contains("code.delta"))
        .unwrap();
    assert_eq!(
        delta.frame(),
        concat!(
            "event: response.code_interpreter_call_code.delta\n",
            r#"data: {"type":"response.code_interpreter_call_code.delta","item_id":"ci_1","#,
            r#""output_index":1,"delta":"1 +","sequence_number":10}"#,
            "\n\n"
        )
    );
    assert!(
        events
            .iter()
            .all(|event| event.frame().matches('\n').count() == 3)
    );
    assert_eq!(DONE, "data: [DONE]\n\n");
}

#[test]
fn a_failure_is_the_status_of_the_item_and_has_no_event_of_its_own() {
    for status in [ItemStatus::Failed, ItemStatus::Incomplete] {
        let mut draft = Draft::begin(response());
        let call = draft.interpreter("ci_1".to_owned(), "cntr_1".to_owned());
        draft.code(&call, "while True: pass");
        draft.interpret(&call);
        draft.code(&call, "too late");
        draft.end_interpreter(call, status, None);
        let mut events = draft.take();
        events.extend(draft.complete(usage(), 1).1);
        let told = json_of(&events);
        Order::check(&told).unwrap();
        let names: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(
            names[3..],
            [
                "response.code_interpreter_call.in_progress",
                "response.code_interpreter_call_code.delta",
                "response.code_interpreter_call_code.done",
                "response.code_interpreter_call.interpreting",
                "response.output_item.done",
                "response.completed",
            ]
        );
        assert_eq!(told[7]["item"]["status"], json!(status));
        assert_eq!(told[7]["item"]["code"], "while True: pass");
    }
}

#[test]
fn an_error_is_sent_in_both_forms_and_fails_the_response() {
    let mut draft = Draft::begin(response());
    let message = draft.message("msg_1".to_owned());
    draft.text(&message, "half");
    let (response, events) = draft.fail(broken(), None);
    let told = json_of(&events);
    Order::check(&told).unwrap();
    let error = &told[told.len() - 2];
    assert_eq!(
        *error,
        json!({
            "type": "error",
            "sequence_number": 8,
            "code": "server_error",
            "message": "the provider cut the stream",
            "param": null,
            "error": {"type": "model_error", "code": null, "message": "the provider cut the stream",
                "param": null},
        })
    );
    assert_eq!(response.error.unwrap().code, "server_error");
    assert_eq!(told[7]["item"]["status"], "incomplete");
}

#[test]
fn a_response_with_an_open_item_is_not_complete() {
    let mut draft = Draft::begin(response());
    let call = draft.interpreter("ci_1".to_owned(), "cntr_1".to_owned());
    draft.interpret(&call);
    let (response, events) = draft.complete(usage(), 1);
    Order::check(&json_of(&events)).unwrap();
    assert_eq!(response.incomplete_details.unwrap().reason, "unfinished_item");
    assert_eq!(response.completed_at, None);
}

#[test]
fn the_order_rejects_the_same_events_as_a_strict_client() {
    let (_, events) = analysis();
    let told = json_of(&events);
    for left_out in 0..told.len() {
        let mut fewer = told.clone();
        fewer.remove(left_out);
        for (number, event) in fewer.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
        // Without a citation's event the rest is whole; deltas, beginnings and ends are missed.
        let missed = told[left_out]["type"] != "response.output_text.annotation.added";
        assert_eq!(Order::check(&fewer).is_err(), missed, "{}", told[left_out]);
    }
    let mut renamed = told.clone();
    renamed[9]["type"] = json!("acme:code_interpreter_call.failed");
    assert!(Order::check(&renamed).is_err());
    let mut without = told;
    without[8]["item"].as_object_mut().unwrap().remove("outputs");
    assert!(Order::check(&without).is_err());
}

/// Change of a draft; numbers choose among the open items.
#[derive(Clone, Debug)]
enum DraftStep {
    Begin(u8),
    Grow(usize, String),
    Interpret(usize),
    Annotate(usize),
    End(usize, u8),
}

#[derive(Debug)]
enum DraftSlot {
    Message(MessageSlot),
    Reasoning(ReasoningSlot),
    Call(CallSlot),
    Interpreter(InterpreterSlot),
    List(McpListSlot),
    Tool(McpSlot),
}

fn step() -> impl Strategy<Value = DraftStep> {
    prop_oneof![
        (0..6u8).prop_map(DraftStep::Begin),
        (any::<usize>(), ".{0,3}").prop_map(|(at, text)| DraftStep::Grow(at, text)),
        any::<usize>().prop_map(DraftStep::Interpret),
        any::<usize>().prop_map(DraftStep::Annotate),
        (any::<usize>(), 0..3u8).prop_map(|(at, status)| DraftStep::End(at, status)),
    ]
}

fn play(steps: Vec<DraftStep>, end: u8) -> Vec<StreamEvent> {
    let mut draft = Draft::begin(response());
    let mut ids = Ids::counted();
    let mut slots = Vec::new();
    let mut events = draft.take();
    for step in steps {
        let open = slots.len();
        match step {
            DraftStep::Begin(0) => slots.push(DraftSlot::Message(draft.message(ids.mint("msg")))),
            DraftStep::Begin(1) => slots.push(DraftSlot::Reasoning(draft.reasoning(ids.mint("rs")))),
            DraftStep::Begin(2) => {
                let call = draft.function_call(ids.mint("fc"), ids.mint("call"), None, "f".to_owned());
                slots.push(DraftSlot::Call(call));
            }
            DraftStep::Begin(3) => slots.push(DraftSlot::List(
                draft.mcp_list(ids.mint("mcpl"), "shelf".to_owned()),
            )),
            DraftStep::Begin(4) => {
                let call = draft.mcp_call(ids.mint("mcp"), "shelf".to_owned(), "read".to_owned(), None);
                slots.push(DraftSlot::Tool(call));
            }
            DraftStep::Begin(_) => slots.push(DraftSlot::Interpreter(
                draft.interpreter(ids.mint("ci"), "c".to_owned()),
            )),
            _ if open == 0 => {}
            DraftStep::Grow(at, text) => match &slots[at % open] {
                DraftSlot::Message(slot) if text.len() == 1 => draft.refuse(slot, text),
                DraftSlot::Message(slot) => draft.text(slot, text),
                DraftSlot::Reasoning(slot) => draft.think(slot, text),
                DraftSlot::Call(slot) => draft.arguments(slot, text),
                DraftSlot::Interpreter(slot) => draft.code(slot, text),
                DraftSlot::List(_) => {}
                DraftSlot::Tool(slot) => draft.mcp_arguments(slot, text),
            },
            DraftStep::Interpret(at) => match &slots[at % open] {
                DraftSlot::Interpreter(slot) => draft.interpret(slot),
                DraftSlot::Tool(slot) => draft.call_mcp(slot),
                _ => {}
            },
            DraftStep::Annotate(at) => {
                if let DraftSlot::Message(slot) = &slots[at % open] {
                    draft.annotate(slot, Annotation::Other(json!({"type": "url_citation"})));
                }
            }
            DraftStep::End(at, status) => match slots.remove(at % open) {
                DraftSlot::Message(slot) => draft.end_message(slot),
                DraftSlot::Reasoning(slot) => draft.end_reasoning(slot),
                DraftSlot::Call(slot) => draft.end_function_call(slot),
                DraftSlot::Interpreter(slot) => {
                    let statuses = [ItemStatus::Completed, ItemStatus::Incomplete, ItemStatus::Failed];
                    draft.end_interpreter(slot, statuses[usize::from(status)], None);
                }
                DraftSlot::List(slot) if status == 0 => {
                    draft.end_mcp_list(slot, Err("it is gone".to_owned()));
                }
                DraftSlot::List(slot) => draft.end_mcp_list(
                    slot,
                    Ok(vec![ListedTool {
                        name: "read".to_owned(),
                        description: None,
                        input_schema: json!({"type": "object"}),
                        annotations: None,
                    }]),
                ),
                DraftSlot::Tool(slot) => draft.end_mcp_call(
                    slot,
                    match status {
                        0 => Ok("[1]".to_owned()),
                        1 => Err(McpError::protocol("it is gone")),
                        _ => Err(McpError::execution("no such book")),
                    },
                ),
            },
        }
        events.extend(draft.take());
    }
    events.extend(match end {
        0 => draft.complete(usage(), 1).1,
        1 => draft.incomplete("max_output_tokens", usage()).1,
        _ => draft.fail(broken(), None).1,
    });
    events
}

proptest! {
    #[test]
    fn every_sequence_of_steps_gives_events_in_order(
        steps in prop::collection::vec(step(), 0..40),
        end in 0..3u8
    ) {
        let events = json_of(&play(steps, end));
        prop_assert_eq!(Order::check(&events), Ok(()));
    }
}
