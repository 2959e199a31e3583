//! Behavior of servers of Chat Completions, each simulated by a server on loopback.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::{ChatCompletions, ChatDialect, MaxTokensField, SendReasoning, SystemRole};
use crate::provider::tests::server::{ModelReply, ModelServer, StreamEnd};
use crate::provider::tests::{endpoint, events, request, said};
use crate::provider::{Finish, ModelEvent, ModelRequest, Provider as _, ProviderError};
use crate::wire::{
    AllowedMode, CodeInterpreterCall, Function, FunctionCall, FunctionCallOutput, FunctionOutput,
    InterpreterOutput, Item, ItemStatus, Part, Reasoning, Role, TokenUsage, ToolChoice, ToolName,
};

async fn answer(reply: ModelReply) -> (Vec<ModelEvent>, Option<ProviderError>) {
    let server = ModelServer::start(vec![reply]).await;
    events(&ChatCompletions::new(endpoint(&server.base))).await
}

async fn whole(reply: ModelReply) -> Vec<ModelEvent> {
    let (events, error) = answer(reply).await;
    assert!(error.is_none(), "{error:?}");
    events
}

fn delta(delta: &Value) -> Value {
    json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta,
        "finish_reason": null}]})
}

fn calls(fragments: &Value) -> Value {
    delta(&json!({"tool_calls": fragments}))
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

/// Each call's id, name and whole arguments.
fn called(events: &[ModelEvent]) -> Vec<(String, String, String)> {
    let mut called: Vec<(String, String, String)> = Vec::new();
    let mut ended = Vec::new();
    for event in events {
        match event {
            ModelEvent::CallBegin { call, id, name } => {
                assert_eq!(*call, called.len());
                called.push((id.clone(), name.clone(), String::new()));
            }
            ModelEvent::Arguments { call, delta } => called[*call].2.push_str(delta),
            ModelEvent::CallEnd { call } => ended.push(*call),
            _ => {}
        }
    }
    assert_eq!(ended, (0..called.len()).collect::<Vec<_>>());
    called
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[tokio::test]
async fn an_answer_as_openai_streams_it() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3}}});
    let chunks = [
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"content": "Let me "})),
        delta(&json!({"content": "see"})),
        calls(&json!([{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "f", "arguments": ""}}])),
        calls(&json!([{"index": 0, "function": {"arguments": "{\"a\""}}])),
        calls(&json!([{"index": 0, "function": {"arguments": ":1}"}}])),
        stop("tool_calls"),
        usage,
    ];
    let mut expected = TokenUsage {
        input_tokens: 5,
        output_tokens: 7,
        total_tokens: 12,
        ..TokenUsage::default()
    };
    expected.input_tokens_details.cached_tokens = 2;
    expected.output_tokens_details.reasoning_tokens = 3;
    let arguments = |delta: &str| ModelEvent::Arguments {
        call: 0,
        delta: delta.to_owned(),
    };
    let expected = [
        text("Let me "),
        text("see"),
        ModelEvent::CallBegin {
            call: 0,
            id: "c1".to_owned(),
            name: "f".to_owned(),
        },
        arguments("{\"a\""),
        arguments(":1}"),
        ModelEvent::CallEnd { call: 0 },
        ModelEvent::Usage(expected),
        ModelEvent::Finish(Finish::Calls),
    ];
    for size in [1, 7, 4096] {
        assert_eq!(whole(ModelReply::events(&chunks).pieces(size)).await, expected);
    }
}

#[tokio::test]
async fn calls_with_the_same_number_are_distinguished_by_id() {
    // Ollama: whole calls in a chunk each, and `stop` in the end.
    let one =
        |id: &str, name: &str| json!([{"index": 0, "id": id, "function": {"name": name, "arguments": "{}"}}]);
    let events = whole(ModelReply::events(&[
        calls(&one("a", "f")),
        calls(&one("b", "g")),
        stop("stop"),
    ]))
    .await;
    assert_eq!(called(&events), [call("a", "f", "{}"), call("b", "g", "{}")]);
    assert_eq!(events.last(), Some(&ModelEvent::Finish(Finish::Calls)));
}

#[tokio::test]
async fn calls_without_number_and_id_are_distinguished_by_name() {
    let one = |name: &str| json!([{"function": {"name": name, "arguments": {"a": [1]}}}]);
    let events = whole(ModelReply::events(&[
        calls(&one("f")),
        calls(&one("f")),
        stop("stop"),
    ]))
    .await;
    let called = called(&events);
    assert_eq!(
        called.iter().map(|call| call.2.as_str()).collect::<Vec<_>>(),
        ["{\"a\":[1]}"; 2]
    );
    assert!(
        called
            .iter()
            .all(|call| call.0.starts_with("call_") && call.0.len() > 40)
    );
    assert_ne!(called[0].0, called[1].0);
}

#[tokio::test]
async fn fragments_of_several_calls_may_be_mixed() {
    let chunks = [
        calls(
            &json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
                     {"index": 1, "id": "b", "function": {"name": "g"}}]),
        ),
        calls(&json!([{"index": 1, "function": {"arguments": "{\"b\""}}])),
        calls(&json!([{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}])),
        calls(&json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": ":2}"}}])),
        stop("tool_calls"),
    ];
    assert_eq!(
        called(&whole(ModelReply::events(&chunks)).await),
        [call("a", "f", "{}"), call("b", "g", "{\"b\":2}")]
    );
}

#[tokio::test]
async fn two_calls_with_one_id_get_ids_of_their_own() {
    let chunks = [
        calls(&json!([{"index": 0, "id": "f", "function": {"name": "f", "arguments": "{}"}}])),
        calls(&json!([{"index": 1, "id": "f", "function": {"name": "f", "arguments": "{}"}}])),
        stop("tool_calls"),
    ];
    let called = called(&whole(ModelReply::events(&chunks)).await);
    assert_eq!(called[0], call("f", "f", "{}"));
    assert!(called[1].0.starts_with("call_"), "{called:?}");
}

#[tokio::test]
async fn arguments_that_come_once_more_as_a_whole_count_once() {
    let fragment = |arguments: &str| {
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]))
    };
    let chunks = [
        fragment("{\"a\""),
        fragment(":1}"),
        fragment("{\"a\":1}"),
        stop("tool_calls"),
    ];
    assert_eq!(
        called(&whole(ModelReply::events(&chunks)).await),
        [call("a", "f", "{\"a\":1}")]
    );
}

#[tokio::test]
async fn reasoning_is_read_under_either_name() {
    for field in ["reasoning", "reasoning_content"] {
        let chunks = [
            delta(&json!({field: "hm", "content": null})),
            delta(&json!({"content": "so"})),
            stop("stop"),
        ];
        let expected = [
            ModelEvent::Reasoning("hm".to_owned()),
            text("so"),
            ModelEvent::Finish(Finish::Stop),
        ];
        assert_eq!(whole(ModelReply::events(&chunks)).await, expected);
    }
}

#[tokio::test]
async fn an_answer_that_was_taken_for_reasoning_is_an_answer() {
    let chunks = [
        delta(&json!({"reasoning": "4"})),
        delta(&json!({"reasoning": "2", "content": ""})),
        stop("stop"),
    ];
    let events = whole(ModelReply::events(&chunks)).await;
    assert_eq!(events[2..], [text("42"), ModelEvent::Finish(Finish::Stop)]);
    // A model that ran out of tokens while it thought has no answer.
    let chunks = [delta(&json!({"reasoning": "4"})), stop("length")];
    let events = whole(ModelReply::events(&chunks)).await;
    assert_eq!(events[1..], [ModelEvent::Finish(Finish::Length)]);
}

#[tokio::test]
async fn an_error_in_the_middle_is_one_and_has_no_key() {
    for (error, message, code) in [
        (
            json!({"message": "out of memory for sk-secret", "code": "oom"}),
            "out of memory for [key]",
            Some("oom"),
        ),
        (
            json!({"message": "busy", "type": "overloaded", "code": null}),
            "busy",
            Some("overloaded"),
        ),
        (json!("plain"), "plain", None),
    ] {
        let chunks = [
            delta(&json!({"content": "so"})),
            json!({"error": error}),
            stop("stop"),
        ];
        let (events, error) = answer(ModelReply::events(&chunks)).await;
        assert_eq!(events, [text("so")]);
        let Some(ProviderError::Reported {
            message: told,
            code: word,
        }) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!((told.as_str(), word.as_deref()), (message, code));
    }
}

#[tokio::test]
async fn heartbeats_carriage_returns_and_empty_choices_are_understood() {
    let start = json!({"choices": [], "prompt_filter_results": []});
    let (so, end) = (delta(&json!({"content": "so"})), stop("stop"));
    let stream = format!(
        ": hello\r\n\r\ndata: {start}\r\n\r\n:\r\n\r\ndata:{so}\r\n\r\ndata:\r\n\r\ndata: {end}\r\n\r\n\
         data: [DONE]\r\n\r\n"
    );
    assert_eq!(
        whole(ModelReply::raw(&stream).pieces(3)).await,
        [text("so"), ModelEvent::Finish(Finish::Stop)]
    );
}

#[tokio::test]
async fn a_stream_without_an_end_is_complete_if_it_gave_a_reason() {
    let (so, end) = (delta(&json!({"content": "so"})), stop("length"));
    let expected = [text("so"), ModelEvent::Finish(Finish::Length)];
    for ending in [StreamEnd::Whole, StreamEnd::Cut] {
        let reply = ModelReply::raw(&format!("data: {so}\n\ndata: {end}\n\n")).end(ending);
        assert_eq!(whole(reply).await, expected);
    }
    // The last event was not even ended.
    assert_eq!(
        whole(ModelReply::raw(&format!("data: {so}\n\ndata: {end}"))).await,
        expected
    );
    let (events, error) = answer(ModelReply::raw(&format!("data: {so}\n\n"))).await;
    assert_eq!(events, [text("so")]);
    assert!(matches!(error, Some(ProviderError::Cut)), "{error:?}");
    // An end that was told, without a reason.
    assert_eq!(
        whole(ModelReply::events(&[so])).await,
        [text("so"), ModelEvent::Finish(Finish::Stop)]
    );
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({"object": "chat.completion", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        "choices": [{
        "message": {"role": "assistant", "content": [{"type": "text", "text": "so"}],
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
        "finish_reason": "tool_calls",
    }]});
    let events = whole(ModelReply::new(
        200,
        "content-type: application/json\r\n",
        &body.to_string(),
    ))
    .await;
    assert_eq!(events[0], text("so"));
    assert_eq!(called(&events), [call("a", "f", "{}")]);
    let usage = TokenUsage {
        input_tokens: 1,
        output_tokens: 2,
        total_tokens: 3,
        ..TokenUsage::default()
    };
    assert_eq!(
        events[4..],
        [ModelEvent::Usage(usage), ModelEvent::Finish(Finish::Calls)]
    );
}

#[tokio::test]
async fn invalid_responses_are_errors() {
    for stream in [
        "<html>hello</html>",
        "",
        "data: {\n\n",
        "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{}]}}]}\n\n",
    ] {
        let (events, error) = answer(ModelReply::raw(stream)).await;
        assert_eq!(events, []);
        assert!(
            matches!(error, Some(ProviderError::Cut | ProviderError::Malformed { .. })),
            "{stream}: {error:?}"
        );
    }
    let (_, error) = answer(ModelReply::new(
        200,
        "content-type: application/json\r\n",
        "<html>",
    ))
    .await;
    assert!(
        matches!(error, Some(ProviderError::Malformed { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn endless_arguments_are_rejected() {
    let chunk =
        calls(&json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "x".repeat(1 << 19)}}]));
    let (_, error) = answer(ModelReply::events(&[chunk.clone(), chunk.clone(), chunk])).await;
    assert!(
        matches!(error, Some(ProviderError::TooLarge { limit: 1_048_576, .. })),
        "{error:?}"
    );
}

async fn asked(request: ModelRequest, dialect: ChatDialect) -> Value {
    let server = ModelServer::start(vec![ModelReply::events(&[stop("stop")])]).await;
    let provider = ChatCompletions::new(endpoint(&server.base)).dialect(dialect);
    drop(provider.stream(request).await.unwrap());
    server.asked()[0].body.clone()
}

fn output(call_id: &str, output: FunctionOutput) -> Item {
    Item::FunctionCallOutput(FunctionCallOutput {
        caller: None,
        id: "fco".to_owned(),
        status: ItemStatus::Completed,
        call_id: call_id.to_owned(),
        output,
    })
}

fn function_call(call_id: &str, arguments: &str) -> Item {
    Item::FunctionCall(FunctionCall {
        id: "fc".to_owned(),
        status: ItemStatus::Completed,
        call_id: call_id.to_owned(),
        name: "f".to_owned(),
        namespace: None,
        arguments: arguments.to_owned(),
        caller: None,
    })
}

fn conversation() -> ModelRequest {
    let picture = Part::InputImage {
        image_url: Some("data:image/png;base64,AA==".to_owned()),
        file_id: None,
        detail: "auto".to_owned(),
    };
    let input = |text: &str| Part::InputText {
        text: text.to_owned(),
    };
    let thought = Part::ReasoningText {
        text: "hm".to_owned(),
    };
    let function = |name: &str| Function {
        name: name.to_owned(),
        description: Some("does".to_owned()),
        parameters: None,
        strict: None,
        output_schema: None,
        allowed_callers: None,
        defer_loading: false,
    };
    ModelRequest {
        instructions: Some("be brief".to_owned()),
        items: vec![
            said(Role::User, vec![input("look"), picture.clone()]),
            Item::CodeInterpreterCall(CodeInterpreterCall {
                id: "ci_1".to_owned(),
                status: ItemStatus::Completed,
                container_id: "cntr_1".to_owned(),
                code: Some("1 + 1".to_owned()),
                outputs: Some(vec![InterpreterOutput::Logs { logs: "2".to_owned() }]),
                report: None,
            }),
            Item::Reasoning(Reasoning {
                id: "rs_1".to_owned(),
                status: ItemStatus::Completed,
                summary: Vec::new(),
                content: Some(vec![thought]),
                encrypted_content: None,
            }),
            said(Role::Assistant, vec![Part::output_text("well")]),
            function_call("a", "{\"x\":1}"),
            function_call("b", "{broken"),
            output("a", FunctionOutput::Text("one".to_owned())),
            output("b", FunctionOutput::Parts(vec![input("two"), picture])),
            said(Role::Developer, vec![input("hurry")]),
        ],
        tools: vec![function("f"), function("code_interpreter")],
        max_output_tokens: Some(9),
        ..request()
    }
}

#[tokio::test]
async fn a_conversation_is_sent_as_every_server_wants_it() {
    let asked = asked(conversation(), ChatDialect::default()).await;
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(asked); });
}

#[tokio::test]
async fn a_server_with_other_words_is_spoken_to_in_them() {
    let dialect = ChatDialect {
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        system_role: SystemRole::Developer,
        send_reasoning: SendReasoning::ReasoningContent,
        stream_usage: false,
        ..ChatDialect::default()
    };
    let body = asked(conversation(), dialect).await;
    assert_eq!(body["max_completion_tokens"], 9);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body.get("stream_options"), None);
    assert_eq!(body["messages"][0]["role"], "developer");
    assert_eq!(body["messages"][4]["reasoning_content"], "hm");
}

fn thought(text: &str) -> Item {
    let text = text.to_owned();
    Item::Reasoning(Reasoning {
        id: "rs_1".to_owned(),
        status: ItemStatus::Completed,
        summary: Vec::new(),
        content: Some(vec![Part::ReasoningText { text }]),
        encrypted_content: None,
    })
}

#[tokio::test]
async fn reasoning_goes_back_under_the_name_that_it_came_by_and_for_this_answer_only() {
    let input = |text: &str| {
        said(
            Role::User,
            vec![Part::InputText {
                text: text.to_owned(),
            }],
        )
    };
    let conversation = ModelRequest {
        items: vec![
            input("one"),
            thought("before"),
            said(Role::Assistant, vec![Part::output_text("1")]),
            input("two"),
            thought("now"),
            function_call("a", "{}"),
            output("a", FunctionOutput::Text("2".to_owned())),
        ],
        ..request()
    };
    for field in ["reasoning", "reasoning_content"] {
        let told = ModelReply::events(&[delta(&json!({"reasoning": "", field: "hm"})), stop("stop")]);
        let server = ModelServer::start(vec![told.clone(), told]).await;
        let provider = ChatCompletions::new(endpoint(&server.base)).dialect(ChatDialect {
            send_reasoning: SendReasoning::Same,
            ..ChatDialect::default()
        });
        for _ in 0..2 {
            let stream = provider.stream(conversation.clone()).await.unwrap();
            assert!(stream.map(Result::unwrap).collect::<Vec<_>>().await.len() > 1);
        }
        let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
        // Before anything was heard there is no name for it.
        assert!(!bodies[0].to_string().contains("now"));
        assert_eq!(bodies[1]["messages"][3][field], "now");
        assert!(!bodies[1].to_string().contains("before"), "{}", bodies[1]);
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_of_them() {
    for fragment in [
        json!([{"index": 0, "id": "a", "function": {"name": "f"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": null}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": {}}}]),
    ] {
        let events = whole(ModelReply::events(&[calls(&fragment), stop("tool_calls")])).await;
        assert_eq!(called(&events), [call("a", "f", "{}")], "{fragment}");
    }
}

#[tokio::test]
async fn fields_that_a_server_does_not_know_are_not_sent() {
    let request = || {
        let mut request = conversation();
        request.tools[0].strict = Some(true);
        request.parallel_tool_calls = false;
        request
    };
    let body = asked(request(), ChatDialect::default()).await;
    assert_eq!(body["parallel_tool_calls"], false);
    assert_eq!(body["tools"][0]["function"]["strict"], true);
    let plain = ChatDialect {
        parallel_tool_calls: false,
        strict: false,
        ..ChatDialect::default()
    };
    let body = asked(request(), plain).await;
    assert_eq!(body.get("parallel_tool_calls"), None);
    assert_eq!(body["tools"][0]["function"].get("strict"), None);
}

#[tokio::test]
async fn only_tools_that_are_allowed_are_offered() {
    let allowed = ModelRequest {
        tool_choice: ToolChoice::Allowed {
            r#type: "allowed_tools".to_owned(),
            mode: AllowedMode::Required,
            tools: vec![ToolName::CodeInterpreter],
        },
        ..conversation()
    };
    let body = asked(allowed, ChatDialect::default()).await;
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tools"][0]["function"]["name"], "code_interpreter");
    assert_eq!(body["tool_choice"], "required");
    let chosen = ModelRequest {
        tool_choice: ToolChoice::Tool(ToolName::CodeInterpreter),
        parallel_tool_calls: false,
        ..conversation()
    };
    let body = asked(chosen, ChatDialect::default()).await;
    assert_eq!(
        body["tool_choice"],
        json!({"type": "function", "function": {"name": "code_interpreter"}})
    );
    assert_eq!(body["parallel_tool_calls"], false);
}

#[tokio::test]
async fn a_file_without_content_is_rejected_before_anything_is_sent() {
    let file = Part::InputFile {
        filename: None,
        file_data: None,
        file_id: Some("file-1".to_owned()),
        file_url: None,
    };
    let request = ModelRequest {
        items: vec![said(Role::User, vec![file])],
        ..request()
    };
    let provider = ChatCompletions::new(endpoint("http://127.0.0.1:1/v1"));
    let error = provider.stream(request).await.err().unwrap();
    assert!(matches!(error, ProviderError::Request { .. }), "{error:?}");
}
