//! Assertions of the compliance suite of Open Responses over HTTP, asserted here again; its WebSocket tests
//! are in `socket`, those of compactions in `compact`.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{block_on, events, names, scripted};

/// A response of a request that has to succeed, both ways.
async fn both(fields: Value, answer: fn() -> ScriptedAnswer) -> Value {
    let (server, _) = scripted([answer(), answer()]).await;
    let stream = server.stream(fields.clone()).await;
    let events = events(&stream.text().await.unwrap());
    Order::check(&events).unwrap();
    for event in &events {
        assert!(CORE.contains(&event["type"].as_str().unwrap()), "{event}");
    }
    let streamed = events.last().unwrap()["response"].clone();
    let whole = server.create(fields).await.ok();
    for response in [&streamed, &whole] {
        resource(response);
        assert!(!response["output"].as_array().unwrap().is_empty());
        assert_eq!(response["status"], "completed");
    }
    whole
}

/// The events that Open Responses has; a stream without hosted tools has no others.
const CORE: [&str; 24] = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.failed",
    "response.incomplete",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning.delta",
    "response.reasoning.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.output_text.annotation.added",
    "error",
];

/// The form of a response: every field is there, numbers are numbers, and what may be null is null
/// or of its type.
fn resource(response: &Value) {
    let fields = response.as_object().unwrap();
    assert_eq!(fields.len(), 31);
    assert_eq!(response["object"], "response");
    for key in ["id", "status", "model", "service_tier"] {
        assert!(response[key].is_string(), "{key}");
    }
    for key in [
        "created_at",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "top_logprobs",
        "temperature",
    ] {
        assert!(response[key].is_number(), "{key}");
    }
    for key in ["parallel_tool_calls", "store", "background"] {
        assert!(response[key].is_boolean(), "{key}");
    }
    for key in ["output", "tools"] {
        assert!(response[key].is_array(), "{key}");
    }
    for key in [
        "previous_response_id",
        "instructions",
        "safety_identifier",
        "prompt_cache_key",
    ] {
        assert!(response[key].is_null() || response[key].is_string(), "{key}");
    }
    for key in ["max_output_tokens", "max_tool_calls", "completed_at"] {
        assert!(response[key].is_null() || response[key].is_u64(), "{key}");
    }
    for key in ["incomplete_details", "error"] {
        assert!(response[key].is_null() || response[key].is_object(), "{key}");
    }
    assert!(response["text"]["format"]["type"].is_string());
    assert!(response["metadata"].is_object() && response["reasoning"].is_object());
    let usage = &response["usage"];
    for count in [
        &usage["input_tokens"],
        &usage["output_tokens"],
        &usage["total_tokens"],
        &usage["input_tokens_details"]["cached_tokens"],
        &usage["output_tokens_details"]["reasoning_tokens"],
    ] {
        assert!(count.is_u64(), "{usage}");
    }
    for item in response["output"].as_array().unwrap() {
        for key in ["id", "type", "status"] {
            assert!(item[key].is_string(), "{item}");
        }
    }
}

fn hello() -> ScriptedAnswer {
    ScriptedAnswer::new().text("Hello to you!")
}

#[test]
fn conversations_of_every_core_kind_are_answered() {
    block_on(async {
        let picture = "data:image/png;base64,iVBORw0KGgo=";
        let user = |text: &str| json!({"type": "message", "role": "user", "content": text});
        for input in [
            json!([user("Say hello.")]),
            json!([{"type": "message", "role": "system", "content": "You are a pirate."},
                user("Say hello.")]),
            json!([
                user("I am Alice."),
                {"type": "message", "role": "assistant", "content": "Hello Alice!"},
                user("Who am I?"),
            ]),
            json!([
                user("I am Alice."),
                {"type": "message", "role": "assistant", "content": "Let me think.", "phase": "commentary"},
                {"type": "message", "role": "assistant", "content": "Hello!", "phase": "final_answer"},
                user("Who am I?"),
            ]),
            json!([{"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": picture},
            ]}]),
        ] {
            both(json!({"input": input}), hello).await;
        }
    });
}

#[test]
fn a_function_is_called_and_returned_with_its_keys() {
    block_on(async {
        let parameters = json!({
            "type": "object",
            "properties": {"location": {"type": "string"}},
            "required": ["location"],
        });
        let tools = json!([{"type": "function", "name": "get_weather", "description": "d",
            "parameters": parameters}]);
        let call = || ScriptedAnswer::new().call("call_1", "get_weather", "{\"location\": \"Paris\"}");
        let response = both(json!({"input": "weather?", "tools": tools}), call).await;
        assert_eq!(response["output"][0]["type"], "function_call");
        let tool = response["tools"][0].as_object().unwrap();
        for key in ["type", "name", "description", "parameters", "strict"] {
            assert!(tool.contains_key(key), "{key}");
        }
    });
}

#[test]
fn a_stream_is_framed_as_the_specification_has_it() {
    block_on(async {
        let (server, _) = scripted([hello()]).await;
        let mut stream = server.stream(json!({"input": "x"})).await;
        let mut text = String::new();
        while let Some(chunk) = stream.chunk().await.unwrap() {
            // No frame is cut: readers of some clients forget what a chunk began.
            assert!(chunk.ends_with(b"\n\n"));
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        assert!(!text.contains("\nid:"));
        let events = events(&text);
        assert_eq!(names(&events)[0], "response.created");
    });
}
