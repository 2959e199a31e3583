//! Containers and responses of one gateway, used through another.

use std::sync::Arc;
use std::time::Duration;

use cellblock_testkit::require;
use cellblock_testkit::wait::until_ok;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    block_on, code, in_container, model, pair, pair_with, printed, read, runs, says, three_turns,
};
use crate::waiting::WaitingProvider;

#[test]
fn a_container_keeps_its_variables_whichever_gateway_is_asked() {
    require!(Postgres);
    block_on(async {
        let answers = [
            runs("c1", "x = 41; print(x)"),
            says("done"),
            runs("c2", "x += 1; print(x)"),
            says("done"),
            runs("c3", "x += 1; print(x, open('/mnt/data/notes.txt').read())"),
            says("done"),
        ];
        let pair = pair(answers).await;
        let (one, two) = (&pair.one, &pair.two);
        let (status, container) = one.post("/v1/containers", &json!({"name": "named"})).await;
        assert_eq!(status, 200, "{container}");
        let id = &container["id"];
        let path = format!("/v1/containers/{}", id.as_str().unwrap());
        assert_eq!(printed(&one.respond(in_container(id)).await), "41\n");
        assert_eq!(printed(&two.respond(in_container(id)).await), "42\n");

        let form = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"notes.txt\"\r\n\r\n\
                    hello\r\n--b--\r\n";
        let upload = two.request(Method::POST, &format!("{path}/files"));
        let upload = upload
            .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
            .body(form);
        let (status, file) = read(upload.send().await.unwrap()).await;
        assert_eq!(status, 200, "{file}");
        assert_eq!(printed(&two.respond(in_container(id)).await), "43 hello\n");

        for api in [one, two] {
            assert_eq!(api.get(&path).await.1["status"], "running");
            assert_eq!(api.get("/v1/containers").await.1["data"][0]["status"], "running");
        }
        assert_eq!(two.delete(&path).await.0, 200);
        assert_eq!(code(&one.get(&path).await), (404, "container_not_found"));
    });
}

#[test]
fn a_message_goes_on_in_the_container_of_another_gateway() {
    require!(Postgres);
    block_on(async {
        let answers = [
            runs("c1", "x = 41; print(x)"),
            says("done"),
            runs("c2", "x += 1; print(x)"),
            says("done"),
        ];
        let pair = pair(answers).await;
        let mut asked = json!({
            "model": "m", "max_tokens": 1000,
            "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "code_execution_20250825", "name": "code_execution"}],
        });
        let (status, first) = pair.one.post("/v1/messages", &asked).await;
        assert_eq!(status, 200, "{first}");
        asked["container"] = first["container"]["id"].clone();
        asked["stream"] = json!(true);
        let stream = pair.two.start("/v1/messages", &asked).await;
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let text = stream.text().await.unwrap();
        assert!(
            text.contains("\"stdout\":\"42\\n\"") && text.contains("message_stop"),
            "{text}"
        );
    });
}

#[test]
fn a_conversation_goes_on_in_its_container_through_another_gateway() {
    require!(Postgres);
    block_on(async {
        let pair = pair(three_turns()).await;
        let auto = json!({"type": "auto"});
        let first = pair.one.respond(in_container(&auto)).await;
        assert_eq!(printed(&first), "1\n");
        let mut next = in_container(&auto);
        next["previous_response_id"] = first["id"].clone();
        let second = pair.two.respond(next.clone()).await;
        assert_eq!(printed(&second), "2\n");
        next["previous_response_id"] = second["id"].clone();
        next["stream"] = json!(true);
        let stream = pair.two.start("/v1/responses", &model(next)).await;
        let text = stream.text().await.unwrap();
        assert!(
            text.contains("\"logs\":\"3\\n\"") && text.ends_with("data: [DONE]\n\n"),
            "{text}"
        );
    });
}

#[test]
fn a_background_response_is_followed_and_canceled_through_another_gateway() {
    require!(Postgres);
    block_on(async {
        let (waiting, gate) = WaitingProvider::new();
        let pair = pair_with(waiting, |_| {}).await;
        let (one, two) = (&pair.one, &pair.two);
        let begin = async || {
            let response = one.respond(json!({"input": "x", "background": true})).await;
            format!("/v1/responses/{}", response["id"].as_str().unwrap())
        };
        let path = begin().await;
        let mut stream = two
            .request(Method::GET, &format!("{path}?stream=true"))
            .send()
            .await
            .unwrap();
        let mut text = String::new();
        while !text.contains("output_text.delta") {
            let chunk = timeout(Duration::from_mins(1), stream.chunk()).await.unwrap();
            text += &String::from_utf8_lossy(&chunk.unwrap().unwrap());
        }
        gate.add_permits(1);
        text += &stream.text().await.unwrap();
        assert!(text.contains("response.completed"), "{text}");
        let ended: Value = two.get(&path).await.1;
        assert_eq!(ended["status"], "completed");

        let path = begin().await;
        let (status, canceled) = timeout(
            Duration::from_mins(1),
            two.post(&format!("{path}/cancel"), &json!({})),
        )
        .await
        .unwrap();
        assert_eq!((status, &canceled["status"]), (200, &json!("cancelled")));
        let path = begin().await;
        assert_eq!(two.delete(&path).await.0, 200);
        until_ok(async || match one.get(&path).await.0 {
            404 => Ok(()),
            other => Err(other),
        })
        .await;
    });
}

#[test]
fn code_that_waits_for_its_client_goes_on_through_another_gateway() {
    require!(Postgres);
    block_on(async {
        let pair = pair([runs("c1", "print(tools.double(x=21))"), says("done")]).await;
        let mut asked = in_container(&json!({"type": "auto"}));
        asked["tools"].as_array_mut().unwrap().push(json!({
            "type": "function", "name": "double", "allowed_callers": ["programmatic"],
            "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        }));
        let waiting = pair.one.respond(asked.clone()).await;
        let call = waiting["output"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["type"] == "function_call")
            .unwrap_or_else(|| panic!("{waiting}"));
        asked["previous_response_id"] = waiting["id"].clone();
        asked["input"] =
            json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "42"}]);
        let ended = pair.two.respond(asked).await;
        let text = ended.to_string();
        assert!(text.contains("\"logs\":\"42\\n\""), "{text}");
    });
}

#[test]
fn a_request_that_is_too_large_gets_the_usual_error_where_records_are_shared() {
    require!(Postgres);
    block_on(async {
        let pair = pair_with(
            Arc::new(cellblock_agent::provider::scripted::ScriptedProvider::new([])),
            |options| options.http.max_body = 1000,
        )
        .await;
        let large = json!({"model": "m", "input": "x".repeat(2000)});
        for path in ["/v1/responses", "/v1/chat/completions"] {
            let answer = pair.one.post(path, &large).await;
            assert_eq!(code(&answer), (413, "request_too_large"));
        }
    });
}
