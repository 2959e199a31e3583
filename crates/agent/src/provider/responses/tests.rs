//! Behavior of servers of the Responses API, each simulated by a server on loopback.

use serde_json::{Value, json};

use super::Responses;
use crate::provider::tests::server::{ModelReply, ModelServer, StreamEnd};
use crate::provider::tests::{endpoint, events, request, said};
use crate::provider::{Finish, ModelEvent, ModelRequest, Provider as _, ProviderError};
use crate::wire::{
    Annotation, CodeInterpreterCall, Draft, Function, InterpreterOutput, Item, ItemStatus, Part, Reasoning,
    Response, ResponseRequest, Role, SamplingSettings, StreamEvent, TokenUsage, ToolChoice, ToolName,
};

async fn answer(reply: ModelReply) -> (Vec<ModelEvent>, Option<ProviderError>) {
    let server = ModelServer::start(vec![reply]).await;
    events(&Responses::new(endpoint(&server.base))).await
}

async fn whole(reply: ModelReply) -> Vec<ModelEvent> {
    let (events, error) = answer(reply).await;
    assert!(error.is_none(), "{error:?}");
    events
}

fn usage() -> TokenUsage {
    let mut usage = TokenUsage {
        input_tokens: 5,
        output_tokens: 7,
        total_tokens: 12,
        ..TokenUsage::default()
    };
    usage.input_tokens_details.cached_tokens = 2;
    usage.output_tokens_details.reasoning_tokens = 3;
    usage
}

/// Returns the events that our own gateway sends for an answer with everything in it.
fn ours() -> (Response, Vec<StreamEvent>) {
    let body = json!({"model": "m", "input": "x"}).to_string();
    let request = ResponseRequest::parse(body.as_bytes(), &mut crate::wire::Ids::counted()).unwrap();
    let mut draft = Draft::begin(Response::new(&request, "resp_1".to_owned(), 1));
    let thought = draft.reasoning("rs_1".to_owned());
    draft.think(&thought, "hm");
    draft.end_reasoning(thought);
    let message = draft.message("msg_1".to_owned());
    draft.text(&message, "Let me ");
    draft.text(&message, "see");
    draft.end_message(message);
    let first = draft.function_call("fc_1".to_owned(), "a".to_owned(), None, "f".to_owned());
    let second = draft.function_call("fc_2".to_owned(), "b".to_owned(), None, "g".to_owned());
    draft.arguments(&second, "{}");
    draft.arguments(&first, "{\"x\"");
    draft.arguments(&first, ":1}");
    draft.end_function_call(first);
    draft.end_function_call(second);
    let mut events = draft.take();
    let (response, last) = draft.complete(usage(), 2);
    events.extend(last);
    (response, events)
}

fn begin(call: usize, id: &str, name: &str) -> ModelEvent {
    let (id, name) = (id.to_owned(), name.to_owned());
    ModelEvent::CallBegin { call, id, name }
}

fn arguments(call: usize, delta: &str) -> ModelEvent {
    let delta = delta.to_owned();
    ModelEvent::Arguments { call, delta }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn ending() -> Vec<ModelEvent> {
    vec![
        ModelEvent::CallEnd { call: 0 },
        ModelEvent::CallEnd { call: 1 },
        ModelEvent::Usage(usage()),
        ModelEvent::Finish(Finish::Calls),
    ]
}

fn streamed() -> Vec<ModelEvent> {
    let mut expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("Let me "),
        text("see"),
        begin(0, "a", "f"),
        begin(1, "b", "g"),
        arguments(1, "{}"),
        arguments(0, "{\"x\""),
        arguments(0, ":1}"),
    ];
    expected.extend(ending());
    expected
}

#[tokio::test]
async fn an_answer_of_our_own_gateway_is_understood() {
    let (_, events) = ours();
    let stream: Vec<_> = events.iter().map(StreamEvent::frame).collect();
    let stream = stream.concat() + crate::wire::DONE;
    for size in [1, 4096] {
        assert_eq!(whole(ModelReply::raw(&stream).pieces(size)).await, streamed());
    }
}

#[tokio::test]
async fn numbers_names_of_events_and_the_last_line_may_be_missing() {
    let (_, events) = ours();
    let mut told: Vec<Value> = events.iter().map(|event| json!(event)).collect();
    for event in &mut told {
        let event = event.as_object_mut().unwrap();
        event.remove("sequence_number");
        if event.contains_key("item_id") {
            event.remove("output_index");
        }
        if let Some(response) = event.get_mut("response") {
            // A response that is only begun, as some servers send it.
            let partial = json!({"id": "resp_1", "status": response["status"], "usage": response["usage"]});
            *response = partial;
        }
    }
    let stream: Vec<_> = told.iter().map(|event| format!("data: {event}\n\n")).collect();
    for end in [StreamEnd::Whole, StreamEnd::Cut] {
        assert_eq!(
            whole(ModelReply::raw(&stream.concat()).end(end)).await,
            streamed()
        );
    }
}

#[tokio::test]
async fn an_answer_without_deltas_is_given_once() {
    let (response, events) = ours();
    let mut expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("Let me see"),
        begin(0, "a", "f"),
        arguments(0, "{\"x\":1}"),
        begin(1, "b", "g"),
        arguments(1, "{}"),
    ];
    expected.extend(ending());
    let told = || events.iter().map(|event| json!(event));
    let ends = told().filter(|event| event["type"].as_str().unwrap().ends_with("item.done"));
    let completed = told().next_back().unwrap();
    let ends: Vec<_> = ends.chain([completed.clone()]).collect();
    assert_eq!(whole(ModelReply::events(&ends)).await, expected);
    assert_eq!(whole(ModelReply::events(&[completed])).await, expected);
    let whole_response = json!(response).to_string();
    assert_eq!(
        whole(ModelReply::new(
            200,
            "content-type: application/json\r\n",
            &whole_response
        ))
        .await,
        expected
    );
}

#[tokio::test]
async fn items_that_the_server_runs_by_itself_are_left_to_it() {
    let item = json!({"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "c",
        "outputs": null});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let delta = json!({"type": "response.code_interpreter_call_code.delta", "item_id": "ci_1", "delta": "1"});
    let unknown = json!({"type": "acme:weather", "of": "tomorrow"});
    let end = json!({"type": "response.completed", "response": {"output": [item]}});
    assert_eq!(
        whole(ModelReply::events(&[delta, done, unknown, end])).await,
        [ModelEvent::Finish(Finish::Stop)]
    );
}

#[tokio::test]
async fn an_answer_that_was_cut_short_says_why() {
    for (reason, finish) in [
        ("max_output_tokens", Finish::Length),
        ("content_filter", Finish::ContentFilter),
    ] {
        let response = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
        let end = json!({"type": "response.incomplete", "response": response});
        assert_eq!(
            whole(ModelReply::events(&[end])).await,
            [ModelEvent::Finish(finish)]
        );
    }
}

#[tokio::test]
async fn an_error_in_either_form_is_one() {
    let delta =
        json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "so"});
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error",
        "message": "sk-secret broke"}}});
    let flat = json!({"type": "error", "code": "server_error", "message": "sk-secret broke", "param": null});
    let nested = json!({"type": "error", "error": {"code": "server_error", "message": "sk-secret broke"}});
    let bare = json!({"error": {"code": "server_error", "message": "sk-secret broke"}});
    for event in [failed, flat, nested, bare] {
        let (events, error) = answer(ModelReply::events(&[delta.clone(), event])).await;
        assert_eq!(events, [text("so")]);
        let Some(ProviderError::Reported { message, code }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(
            (message.as_str(), code.as_deref()),
            ("[key] broke", Some("server_error"))
        );
    }
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_cut() {
    let delta = json!({"type": "response.output_text.delta", "delta": "so"});
    let (events, error) = answer(ModelReply::raw(&format!("data: {delta}\n\n"))).await;
    assert_eq!(events, [text("so")]);
    assert!(matches!(error, Some(ProviderError::Cut)), "{error:?}");
    let (_, error) = answer(ModelReply::new(200, "content-type: application/json\r\n", "{}")).await;
    assert!(
        matches!(error, Some(ProviderError::Malformed { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_conversation_is_sent_without_what_only_its_own_server_knows() {
    let citation = Annotation::Other(json!({"type": "container_file_citation", "file_id": "f"}));
    let answer = Part::OutputText {
        text: "well".to_owned(),
        annotations: vec![citation],
        logprobs: Vec::new(),
    };
    let thought = |sealed: Option<&str>| {
        Item::Reasoning(Reasoning {
            id: "rs_1".to_owned(),
            status: ItemStatus::Completed,
            summary: Vec::new(),
            content: None,
            encrypted_content: sealed.map(str::to_owned),
        })
    };
    let picture = Part::InputImage {
        image_url: Some("data:image/png;base64,AA==".to_owned()),
        file_id: None,
        detail: "auto".to_owned(),
    };
    let asked = ModelRequest {
        items: vec![
            said(
                Role::User,
                vec![
                    Part::InputText {
                        text: "look".to_owned(),
                    },
                    picture,
                ],
            ),
            thought(None),
            thought(Some("sealed")),
            Item::CodeInterpreterCall(CodeInterpreterCall {
                id: "ci_1".to_owned(),
                status: ItemStatus::Incomplete,
                container_id: "cntr_1".to_owned(),
                code: Some("1 + 1".to_owned()),
                outputs: Some(vec![InterpreterOutput::Image {
                    url: "data:".to_owned(),
                }]),
                report: None,
            }),
            said(Role::Assistant, vec![answer]),
        ],
        tools: vec![Function {
            name: "code_interpreter".to_owned(),
            description: None,
            parameters: json!({"properties": {"code": {"default": null}}})
                .as_object()
                .cloned(),
            strict: None,
            output_schema: None,
            allowed_callers: None,
            defer_loading: false,
        }],
        tool_choice: ToolChoice::Tool(ToolName::CodeInterpreter),
        ..request()
    };
    let server = ModelServer::start(vec![ModelReply::events(&[])]).await;
    drop(
        Responses::new(endpoint(&server.base))
            .stream(asked)
            .await
            .unwrap(),
    );
    let asked = server.asked().remove(0);
    assert!(
        asked.head.starts_with("post /v1/responses http/1.1\r\n"),
        "{}",
        asked.head
    );
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(asked.body); });
}

#[tokio::test]
async fn sealed_reasoning_is_given_once_and_asked_for_and_sent_back_where_it_is_wanted() {
    let item = json!({"id": "rs_1", "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "opaque"});
    let reply = || {
        ModelReply::events(&[
            json!({"type": "response.output_item.added", "output_index": 0,
                "item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
            json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0,
                "delta": "hm"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}}),
        ])
    };
    assert_eq!(
        whole(reply()).await,
        [
            ModelEvent::Reasoning("hm".to_owned()),
            ModelEvent::Sealed("opaque".to_owned()),
            ModelEvent::Finish(Finish::Stop)
        ]
    );
    let server = ModelServer::start(vec![reply()]).await;
    let mut asked = request();
    asked.reasoning.sealed = true;
    asked.items.push(Item::Reasoning(Reasoning {
        id: "rs_1".to_owned(),
        status: ItemStatus::Completed,
        summary: Vec::new(),
        content: Some(vec![Part::ReasoningText {
            text: "hm".to_owned(),
        }]),
        encrypted_content: Some("opaque".to_owned()),
    }));
    let provider = Responses::new(endpoint(&server.base));
    drop(provider.stream(asked).await.unwrap());
    let body = server.asked().remove(0).body;
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(
        body["input"][1],
        json!({"type": "reasoning", "summary": [], "encrypted_content": "opaque"})
    );
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_of_them() {
    let item = json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": ""});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    let end = json!({"type": "response.completed", "response": {"output": [item]}});
    let expected = [
        begin(0, "a", "f"),
        arguments(0, "{}"),
        ModelEvent::CallEnd { call: 0 },
        ModelEvent::Finish(Finish::Calls),
    ];
    assert_eq!(whole(ModelReply::events(&[added, end])).await, expected);
}

#[tokio::test]
async fn a_server_that_counts_tokens_is_asked_and_another_is_not_believed() {
    let counted = json!({"object": "response.input_tokens", "input_tokens": 11}).to_string();
    let reply = |status, body: &str| ModelReply::new(status, "content-type: application/json\r\n", body);
    let server = ModelServer::start(vec![reply(200, &counted), reply(404, "{}"), reply(400, "{}")]).await;
    let provider = Responses::new(endpoint(&server.base));
    assert_eq!(provider.count(request()).await.unwrap(), Some(11));
    let asked = server.asked().remove(0);
    assert!(
        asked
            .head
            .starts_with("post /v1/responses/input_tokens http/1.1\r\n"),
        "{}",
        asked.head
    );
    let mut fields: Vec<_> = asked.body.as_object().unwrap().keys().cloned().collect();
    fields.sort();
    assert_eq!(fields, ["input", "model"]);
    assert_eq!(provider.count(request()).await.unwrap(), None);
    let refused = provider.count(request()).await;
    assert!(
        matches!(refused, Err(ProviderError::Status { status: 400, .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn stop_sequences_are_rejected_because_the_api_has_none() {
    let provider = Responses::new(endpoint("http://127.0.0.1:1/v1"));
    let asked = ModelRequest {
        sampling: SamplingSettings {
            stop: vec!["END".to_owned()],
            ..SamplingSettings::default()
        },
        ..request()
    };
    let refused = provider.stream(asked).await.err();
    assert!(
        matches!(refused, Some(ProviderError::Unsupported { param: "stop", .. })),
        "{refused:?}"
    );
}
