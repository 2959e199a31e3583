//! Streams, and clients that leave or do not read.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::models::{EndlessProvider, PanickingProvider};
use crate::order::Order;
use crate::support::{block_on, events, interpreter_tool, names, runs, scripted, serve, serve_with};
use crate::waiting::WaitingProvider;

/// The id in the first event of a stream.
async fn id(stream: &mut reqwest::Response) -> String {
    let first = stream.chunk().await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&first).into_owned();
    text.split("\"id\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned()
}

/// Reads a stream until it says this.
pub(crate) async fn until(stream: &mut reqwest::Response, words: &str) {
    let mut read = String::new();
    while !read.contains(words) {
        let chunk = stream.chunk().await.unwrap();
        read.push_str(&String::from_utf8_lossy(
            &chunk.unwrap_or_else(|| panic!("no {words}: {read}")),
        ));
    }
}

#[test]
fn a_stream_tells_everything_in_order_and_what_it_ends_with_is_kept() {
    block_on(async {
        let (server, _) = scripted([runs("c1", "print(1)"), ScriptedAnswer::new().text("done")]).await;
        let stream = server
            .stream(json!({"input": "x", "tools": interpreter_tool(),
                "include": ["code_interpreter_call.outputs"]}))
            .await;
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let events = events(&stream.text().await.unwrap());
        Order::check(&events).unwrap();
        let last = &events.last().unwrap()["response"];
        assert_eq!(
            last["output"][0]["outputs"],
            json!([{"type": "logs", "logs": "1\n"}])
        );
        let kept = server
            .get(&format!("responses/{}", last["id"].as_str().unwrap()))
            .await
            .ok();
        assert_eq!(kept, *last);
    });
}

#[test]
fn the_event_of_failed_code_is_for_those_who_ask_for_it() {
    block_on(async {
        let failing = || ScriptedAnswer::new().call("c1", "code_interpreter", "{\"code\": 1}");
        let answers = [
            failing(),
            ScriptedAnswer::new().text("a"),
            failing(),
            ScriptedAnswer::new().text("b"),
        ];
        let (server, _) = scripted(answers).await;
        let body = json!({"model": "m", "input": "x", "tools": interpreter_tool(), "stream": true});
        let name = "response.code_interpreter_call.failed";
        let plain = server.request("POST", "responses").body(body.to_string());
        let plain = events(&plain.send().await.unwrap().text().await.unwrap());
        Order::check(&plain).unwrap();
        assert!(!names(&plain).contains(&name));
        let asked = server
            .request("POST", "responses")
            .header("X-Cellblock-Events", "failed")
            .body(body.to_string());
        let asked = events(&asked.send().await.unwrap().text().await.unwrap());
        let place = names(&asked).iter().position(|event| *event == name).unwrap();
        assert_eq!(asked[place + 1]["item"]["status"], "failed");
        assert_eq!(asked[place + 1]["item"]["id"], asked[place]["item_id"]);
        let numbers = asked
            .iter()
            .map(|event| event["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..u64::try_from(asked.len()).unwrap()));
    });
}

#[test]
fn a_client_that_leaves_its_stream_cancels_the_response_and_stops_the_code() {
    block_on(async {
        let forever = "import time\nwhile True:\n    time.sleep(0.01)";
        let (server, _) = scripted([runs("c1", forever)]).await;
        let mut stream = server
            .stream(json!({"input": "x", "tools": interpreter_tool()}))
            .await;
        let id = id(&mut stream).await;
        until(&mut stream, "response.code_interpreter_call.interpreting").await;
        drop(stream);
        let response = server.until(&id, "cancelled").await;
        assert_eq!(response["output"][0]["status"], "incomplete");
        assert_eq!(response["incomplete_details"], Value::Null);
        // Its turn is over, not only told to be.
        server.gateway().tasks.close();
        server.gateway().tasks.wait().await;
    });
}

#[test]
fn a_client_that_does_not_wait_for_its_answer_cancels_the_response() {
    block_on(async {
        let (model, _gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let request = server
            .request("POST", "responses")
            .body(json!({"model": "m", "input": "x"}).to_string())
            .timeout(Duration::from_millis(200));
        assert!(request.send().await.unwrap_err().is_timeout());
        server.gateway().tasks.close();
        server.gateway().tasks.wait().await;
        let status: Option<String> = server
            .gateway()
            .records
            .with(|database| database.first("SELECT status FROM responses", &[], |row| row.get(0)))
            .await
            .unwrap();
        assert_eq!(status.as_deref(), Some("cancelled"));
    });
}

#[test]
fn a_conversation_goes_on_after_code_that_was_broken_off() {
    block_on(async {
        let (server, provider) =
            scripted([runs("c1", "while True: pass"), ScriptedAnswer::new().text("ok")]).await;
        let mut stream = server
            .stream(json!({"input": "x", "tools": interpreter_tool()}))
            .await;
        let id = id(&mut stream).await;
        until(&mut stream, "response.code_interpreter_call.interpreting").await;
        drop(stream);
        server.until(&id, "cancelled").await;
        server
            .create(json!({"input": "y", "previous_response_id": id}))
            .await
            .ok();
        let asked = json!(provider.asked()[1].items);
        assert_eq!(asked[2]["type"], "function_call_output");
        assert_eq!(asked[2]["call_id"], asked[1]["call_id"]);
    });
}

#[test]
fn a_silent_stream_says_that_it_is_still_there() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve_with(model as Arc<dyn Provider>, |options| {
            options.responses.keep_alive = Duration::from_millis(20);
        })
        .await;
        let mut stream = server.stream(json!({"input": "x"})).await;
        until(&mut stream, ": keep-alive\n\n").await;
        gate.add_permits(1);
        until(&mut stream, "data: [DONE]\n\n").await;
    });
}

#[test]
fn a_client_that_does_not_read_is_waited_for_and_then_cancelled() {
    block_on(async {
        let server = serve_with(Arc::new(EndlessProvider) as Arc<dyn Provider>, |options| {
            options.responses.stall_timeout = Duration::from_millis(200);
        })
        .await;
        let mut stream = server.stream(json!({"input": "x"})).await;
        let id = id(&mut stream).await;
        let response = server.until(&id, "cancelled").await;
        // What was written meanwhile is what fits between them, not what the model would say.
        let text = response["output"][0]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 64 << 20, "{} bytes", text.len());
        drop(stream);
    });
}

#[test]
fn a_model_that_talks_for_ever_comes_to_an_end() {
    block_on(async {
        let server = serve(Arc::new(EndlessProvider) as Arc<dyn Provider>).await;
        let response = server.create(json!({"input": "x"})).await.ok();
        assert_eq!(
            (&response["status"], &response["incomplete_details"]["reason"]),
            (&json!("incomplete"), &json!("max_output_bytes"))
        );
        let text = response["output"][0]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 20 << 20, "{} bytes", text.len());
    });
}

#[test]
fn a_turn_that_panics_fails_its_response_and_ends_its_stream() {
    block_on(async {
        let server = serve(Arc::new(PanickingProvider) as Arc<dyn Provider>).await;
        let stream = server.stream(json!({"input": "x"})).await;
        let events = events(&stream.text().await.unwrap());
        let last = names(&events);
        assert_eq!(last[last.len() - 2..], ["error", "response.failed"]);
        let response = &events.last().unwrap()["response"];
        assert_eq!(
            (&response["status"], &response["error"]["code"]),
            (&json!("failed"), &json!("server_error"))
        );
        assert!(!response.to_string().contains("as the test wants it"));
        let got = server.create(json!({"input": "x"})).await;
        assert_eq!(got.error(), (500, "server_error"));
    });
}
