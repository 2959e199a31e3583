//! Requests that are rejected, in Anthropic's form.

use std::sync::Arc;

use cellblock_agent::provider::scripted::ScriptedProvider;
use cellblock_gateway::keys::KeyTerms;
use serde_json::{Value, json};

use super::{body, tool};
use crate::support::{block_on, scripted, serve_with};

#[test]
fn a_wrong_request_is_rejected_by_the_name_of_its_field() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let skills = json!({"skills": [{"skill_id": "pptx", "type": "anthropic"}]});
        let result = json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
            "content": "x"}]}]);
        let upload = json!([{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]);
        let thing = |more: Value| {
            let mut thing = json!({"name": "f", "input_schema": {"type": "object"}});
            thing
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            thing
        };
        for (fields, named) in [
            (json!({"max_tokens": null}), "`max_tokens` is required"),
            (json!({"model": null}), "`model` is required"),
            (json!({"messages": []}), "`messages` is required"),
            (json!({"temperature": 1.5}), "`temperature` is out of range"),
            (
                json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
                "`web_search_20250305`",
            ),
            (
                json!({"tools": [{"name": "f"}]}),
                "`tools[0].input_schema` is required",
            ),
            (
                json!({"tools": [thing(json!({})), thing(json!({}))]}),
                "a tool named `f` already exists",
            ),
            (
                json!({"tools": [thing(json!({"allowed_callers": ["code_execution_20260120"]}))]}),
                "no code can call it",
            ),
            (
                json!({"tools": [thing(json!({"allowed_callers": ["me"]}))]}),
                "`me`",
            ),
            (json!({"tool_choice": {"type": "any"}}), "`tool_choice` is `any`"),
            (
                json!({"tool_choice": {"type": "tool", "name": "g"}}),
                "not in `tools`",
            ),
            (json!({"container": skills}), "this request cannot run any"),
            (
                json!({"mcp_servers": [{"type": "url"}]}),
                "`mcp_servers` is not supported",
            ),
            (json!({"messages": result}), "there is no `tool_use` `t`"),
            (json!({"messages": upload}), "there is no container"),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}),
                "`video`",
            ),
        ] {
            let refused = server.post("messages", &body(&fields)).await;
            assert_eq!(refused.status, 400, "{}", refused.body);
            assert_eq!(
                (&refused.body["type"], &refused.body["error"]["type"]),
                (&json!("error"), &json!("invalid_request_error"))
            );
            let message = refused.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(named), "{named}: {message}");
            assert!(refused.body["request_id"].as_str().unwrap().starts_with("req_"));
        }
        let missing = body(&json!({"container": "cntr_1", "tools": [tool("20250522")]}));
        let missing = server.post("messages", &missing).await;
        assert_eq!(
            (missing.status, &missing.body["error"]["type"]),
            (404, &json!("not_found_error"))
        );
        let nowhere = server.get("messages/batches").await;
        assert_eq!(
            nowhere.body["error"]["type"], "not_found_error",
            "{}",
            nowhere.body
        );
        assert!(provider.asked().is_empty());
    });
}

#[test]
fn a_request_without_a_key_is_rejected_in_the_form_of_its_api() {
    block_on(async {
        let server = serve_with(Arc::new(ScriptedProvider::new([])), |options| {
            options.auth.required = true;
        })
        .await;
        let made = server
            .gateway()
            .keys
            .create("ann", KeyTerms::default())
            .await
            .unwrap();
        let url = format!("http://{}/v1/messages", server.address);
        let client = reqwest::Client::new();
        let send = async |secret: Option<&str>| {
            let mut request = client.post(&url).body(body(&json!({})).to_string());
            if let Some(secret) = secret {
                request = request.header("x-api-key", secret);
            }
            let answer = request.send().await.unwrap();
            assert!(answer.headers().contains_key("request-id"));
            let status = answer.status().as_u16();
            let body: Value = answer.json().await.unwrap();
            (status, body["error"]["type"].as_str().unwrap().to_owned())
        };
        for secret in [None, Some("sk-wrong")] {
            assert_eq!(send(secret).await, (401, "authentication_error".to_owned()));
        }
        let secret = made.1.reveal();
        // The key is known: the model has no answer.
        assert_eq!(send(Some(&secret)).await.0, 500);
    });
}
