//! Requests that are wrong: each is an error in OpenAI's form, before anything runs.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::support::{block_on, scripted, serve_with};

#[test]
fn each_mistake_is_named_with_its_parameter() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let ci = |container: Value| json!([{"type": "code_interpreter", "container": container}]);
        for (fields, status, code, param) in [
            (json!({}), 400, "missing_required_parameter", json!("input")),
            (json!({"input": 5}), 400, "invalid_type", json!("input")),
            (json!({"input": [5]}), 400, "invalid_type", json!("input[0]")),
            (
                json!({"input": "x", "stream": "yes"}),
                400,
                "invalid_type",
                json!("stream"),
            ),
            (
                json!({"input": "x", "temperature": 9}),
                400,
                "invalid_value",
                json!("temperature"),
            ),
            (
                json!({"input": "x", "metadata": {"a": 1}}),
                400,
                "invalid_type",
                json!("metadata.a"),
            ),
            (
                json!({"input": "x", "truncation": "some"}),
                400,
                "invalid_value",
                json!("truncation"),
            ),
            (
                json!({"input": "x", "tools": [{"type": "web_search"}]}),
                400,
                "invalid_value",
                json!("tools[0].type"),
            ),
            (
                json!({"input": "x", "tools": ci(json!(7))}),
                400,
                "invalid_type",
                json!("tools[0].container"),
            ),
            (
                json!({"input": "x", "tool_choice": "required"}),
                400,
                "invalid_value",
                json!("tool_choice"),
            ),
            (
                json!({"input": "x", "tool_choice": {"type": "function", "name": "f"}}),
                400,
                "invalid_value",
                json!("tool_choice.name"),
            ),
            (
                json!({"input": "x", "conversation": "conv_1", "previous_response_id": "resp_0"}),
                400,
                "mutually_exclusive_parameters",
                json!("conversation"),
            ),
            (
                json!({"input": "x", "prompt": {"id": "pmpt_1"}}),
                400,
                "unsupported_parameter",
                json!("prompt"),
            ),
            (
                json!({"input": "x", "previous_response_id": "resp_0"}),
                400,
                "previous_response_not_found",
                json!("previous_response_id"),
            ),
        ] {
            let got = server.create(fields.clone()).await;
            assert_eq!(got.error(), (status, code), "{fields}");
            assert_eq!(got.body["error"]["param"], param, "{fields}");
            assert_eq!(got.body["error"]["type"], "invalid_request_error", "{fields}");
        }
        assert_eq!(provider.asked().len(), 0);
    });
}

#[test]
fn a_body_that_is_no_json_and_a_model_that_is_not_there_are_told() {
    block_on(async {
        let (server, _) = scripted([]).await;
        for (body, status, code) in [
            ("", 400, "invalid_json"),
            ("{\"model\": ", 400, "invalid_json"),
            ("null", 400, "invalid_type"),
            ("{\"model\": \"none\", \"input\": \"x\"}", 404, "model_not_found"),
            (
                "{\"model\": \"none\", \"input\": \"x\", \"stream\": true}",
                404,
                "model_not_found",
            ),
            ("{\"input\": \"x\"}", 400, "missing_required_parameter"),
        ] {
            let request = server.request("POST", "responses").body(body);
            assert_eq!(server.send(request).await.error(), (status, code), "{body}");
        }
        let got = server.get("responses/resp_none").await;
        assert_eq!(got.error(), (404, "response_not_found"));
        assert_eq!(got.body["error"]["type"], "not_found");
        let got = server.get("responses/resp_none?starting_after=x").await;
        assert_eq!(got.error(), (400, "invalid_query"));
    });
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new([])) as Arc<dyn Provider>;
        let server = serve_with(provider, |options| options.http.max_body = 1000).await;
        for path in ["responses", "responses/compact"] {
            let got = server
                .post(path, &json!({"model": "m", "input": "x".repeat(1000)}))
                .await;
            assert_eq!(got.error(), (413, "request_too_large"));
            assert_eq!(got.body["error"]["type"], "invalid_request_error");
            let message = got.body["error"]["message"].as_str().unwrap();
            assert!(message.contains("more than 1000 bytes, the limit"), "{message}");
            assert!(message.contains("`http.max_body`"), "{message}");
        }
    });
}

#[test]
fn fields_that_nobody_here_knows_are_ignored() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new().text("ok")]).await;
        let response = server
            .create(json!({
                "input": [{"role": "user", "content": "x", "novelty": 1}],
                "stream_options": {"include_obfuscation": false},
                "prompt_cache_options": {}, "context_management": [{"type": "compaction"}],
                "user": "u", "conversation": null, "prompt": null,
            }))
            .await
            .ok();
        assert_eq!(response["status"], "completed");
        assert_eq!(response.as_object().unwrap().len(), 31);
    });
}
