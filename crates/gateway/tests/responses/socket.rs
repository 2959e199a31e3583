//! The API over a WebSocket.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::order::Order;
use crate::support::{
    PATIENCE, Server, block_on, interpreter_tool, runs, scripted, serve, serve_with, told, types,
};
use crate::waiting::WaitingProvider;

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(server: &Server) -> Self {
        let url = format!("ws://{}/v1/responses", server.address);
        Self(connect_async(url).await.unwrap().0)
    }

    async fn say(&mut self, fields: Value) {
        let mut body = fields;
        body["type"] = json!("response.create");
        body["model"] = json!("m");
        self.0.send(Message::text(body.to_string())).await.unwrap();
    }

    /// The next message, if there is one before the end.
    async fn hear(&mut self) -> Option<Value> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap()?;
            match message.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// The events of a turn; or its one error.
    async fn turn(&mut self, fields: Value) -> Vec<Value> {
        self.say(fields).await;
        let mut events = Vec::new();
        loop {
            let event = self.hear().await.unwrap();
            let last = matches!(
                event["type"].as_str().unwrap(),
                "response.completed" | "response.failed" | "response.incomplete"
            );
            let refused = event["status"].is_u64();
            events.push(event);
            if last || refused {
                return events;
            }
        }
    }

    /// The response of a turn that has to be good.
    async fn response(&mut self, fields: Value) -> Value {
        let events = self.turn(fields).await;
        Order::check(&events).unwrap();
        events.last().unwrap()["response"].clone()
    }

    /// The status and code of a request that has to be refused.
    async fn refused(&mut self, fields: Value) -> (u64, String) {
        let events = self.turn(fields).await;
        let [error] = &events[..] else {
            panic!("{events:?}")
        };
        refusal(error)
    }
}

fn refusal(error: &Value) -> (u64, String) {
    assert_eq!(error["type"], "error");
    assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string());
    let code = error["error"]["code"].as_str().unwrap().to_owned();
    (error["status"].as_u64().unwrap(), code)
}

fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().text(text)
}

#[test]
fn several_turns_come_one_after_the_other_with_the_events_of_streams() {
    block_on(async {
        let answers = [runs("c1", "print(1)"), says("one"), says("two"), says("three")];
        let (server, _) = scripted(answers).await;
        let mut socket = Socket::open(&server).await;
        let first = socket
            .response(json!({"input": "a", "tools": interpreter_tool(),
                "include": ["code_interpreter_call.outputs"]}))
            .await;
        assert_eq!(first["output"][0]["outputs"][0]["logs"], "1\n");
        // Two at once are answered in their order.
        socket.say(json!({"input": "b"})).await;
        let third = socket.turn(json!({"input": "c"})).await;
        assert_eq!(
            third.last().unwrap()["response"]["output"][0]["content"][0]["text"],
            "two"
        );
        let mut text = Value::Null;
        while let Some(event) = socket.hear().await {
            if event["type"] == "response.completed" {
                text = event["response"]["output"][0]["content"][0]["text"].clone();
                break;
            }
        }
        assert_eq!(text, "three");
    });
}

#[test]
fn a_connection_remembers_its_last_response_though_it_is_not_stored() {
    block_on(async {
        let (server, provider) = scripted([says("OK"), says("cobalt"), says("still")]).await;
        let mut socket = Socket::open(&server).await;
        let first = socket.response(json!({"input": "cobalt", "store": false})).await;
        let second = socket
            .response(json!({"input": "which?", "store": false, "previous_response_id": first["id"]}))
            .await;
        assert_eq!(
            told(&json!(provider.asked()[1].items)),
            ["user: cobalt", "assistant: OK", "user: which?"]
        );
        // Only the last one.
        let missing = (400, "previous_response_not_found".to_owned());
        assert_eq!(
            socket
                .refused(json!({"input": "x", "store": false, "previous_response_id": first["id"]}))
                .await,
            missing
        );
        // Another connection knows nothing of it, and then works as if nothing had been.
        let mut other = Socket::open(&server).await;
        let stale = json!({"input": "x", "store": false, "previous_response_id": second["id"]});
        assert_eq!(other.refused(stale).await, missing);
        assert_eq!(other.response(json!({"input": "x"})).await["status"], "completed");
    });
}

#[test]
fn what_goes_on_from_a_connections_memory_and_is_stored_is_stored_whole() {
    block_on(async {
        let (server, provider) = scripted([says("OK"), says("cobalt"), says("over HTTP")]).await;
        let mut socket = Socket::open(&server).await;
        let first = socket.response(json!({"input": "cobalt", "store": false})).await;
        let second = socket
            .response(json!({"input": "which?", "previous_response_id": first["id"]}))
            .await;
        let local = server.of("local");
        local
            .create(json!({"input": "and?", "previous_response_id": second["id"]}))
            .await
            .ok();
        assert_eq!(
            told(&json!(provider.asked()[2].items)),
            [
                "user: cobalt",
                "assistant: OK",
                "user: which?",
                "assistant: cobalt",
                "user: and?"
            ]
        );
    });
}

#[test]
fn a_continuation_that_fails_leaves_nothing_to_go_on_from() {
    block_on(async {
        let (server, provider) = scripted([says("OK"), says("fresh")]).await;
        let mut socket = Socket::open(&server).await;
        let first = socket.response(json!({"input": "ember", "store": false})).await;
        let unknown = json!([{"type": "function_call_output", "call_id": "call_none", "output": "x"}]);
        let failed = socket
            .refused(json!({"input": unknown, "store": false, "previous_response_id": first["id"]}))
            .await;
        assert_eq!(failed, (400, "unknown_call_id".to_owned()));
        let stale = json!({"input": "x", "store": false, "previous_response_id": first["id"]});
        assert_eq!(
            socket.refused(stale).await,
            (400, "previous_response_not_found".to_owned())
        );
        assert_eq!(provider.asked().len(), 1);
        assert_eq!(
            socket.response(json!({"input": "x"})).await["status"],
            "completed"
        );
    });
}

#[test]
fn a_response_that_is_not_generated_is_empty_and_can_be_gone_on_from() {
    block_on(async {
        let (server, provider) = scripted([says("warmed")]).await;
        let mut socket = Socket::open(&server).await;
        let warm = socket
            .response(json!({"input": "prepare", "store": false, "generate": false}))
            .await;
        assert_eq!(
            (&warm["status"], &warm["output"]),
            (&json!("completed"), &json!([]))
        );
        assert_eq!(provider.asked().len(), 0);
        let next = socket
            .response(json!({"input": "go", "store": false, "previous_response_id": warm["id"]}))
            .await;
        assert_eq!(next["output"][0]["content"][0]["text"], "warmed");
        assert_eq!(
            told(&json!(provider.asked()[0].items)),
            ["user: prepare", "user: go"]
        );
    });
}

#[test]
fn a_compaction_begins_a_new_chain() {
    block_on(async {
        let (server, provider) = scripted([says("in short"), says("one"), says("two")]).await;
        let local = server.of("local");
        let compaction = local
            .post("responses/compact", &json!({"model": "m", "input": "long"}))
            .await
            .ok();
        let mut socket = Socket::open(&server).await;
        let mut input = compaction["output"].clone();
        input
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": "a"}));
        let first = socket.response(json!({"input": input, "store": false})).await;
        socket
            .response(json!({"input": "b", "store": false, "previous_response_id": first["id"]}))
            .await;
        let summary = "user: (What was said before, in short:)\nin short";
        assert_eq!(
            told(&json!(provider.asked()[2].items)),
            [summary, "user: a", "assistant: one", "user: b"]
        );
    });
}

#[test]
fn what_is_wrong_with_a_message_is_told_and_the_connection_stays() {
    block_on(async {
        let (server, _) = scripted([says("ok")]).await;
        let mut socket = Socket::open(&server).await;
        for (text, code) in [
            ("{\"type\":", "invalid_json"),
            ("[]", "invalid_type"),
            (
                "{\"type\": \"response.dance\", \"model\": \"m\", \"input\": \"x\"}",
                "invalid_value",
            ),
            (
                "{\"type\": \"response.create\", \"model\": \"none\", \"input\": \"x\"}",
                "model_not_found",
            ),
            (
                "{\"type\": \"response.create\", \"model\": \"m\"}",
                "missing_required_parameter",
            ),
        ] {
            socket.0.send(Message::text(text)).await.unwrap();
            assert_eq!(refusal(&socket.hear().await.unwrap()).1, code, "{text}");
        }
        socket.0.send(Message::binary(vec![1, 2])).await.unwrap();
        assert_eq!(refusal(&socket.hear().await.unwrap()).1, "invalid_type");
        assert_eq!(
            socket.response(json!({"input": "x"})).await["status"],
            "completed"
        );
    });
}

#[test]
fn a_connection_that_closes_cancels_its_turn() {
    block_on(async {
        let (server, _) = scripted([runs("c1", "while True: pass")]).await;
        let mut socket = Socket::open(&server).await;
        socket
            .say(json!({"input": "x", "tools": interpreter_tool()}))
            .await;
        let id = loop {
            let event = socket.hear().await.unwrap();
            if event["type"] == "response.code_interpreter_call.interpreting" {
                break event["item_id"].clone();
            }
        };
        assert!(id.is_string());
        drop(socket);
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
fn a_connection_that_is_too_old_says_so_and_ends() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new([])) as Arc<dyn Provider>;
        let server = serve_with(provider, |options| {
            options.responses.socket_timeout = Duration::from_millis(100);
        })
        .await;
        let mut socket = Socket::open(&server).await;
        let error = socket.hear().await.unwrap();
        assert_eq!(
            refusal(&error),
            (400, "websocket_connection_limit_reached".to_owned())
        );
        assert_eq!(socket.hear().await, None);
    });
}

#[test]
fn more_requests_than_may_wait_are_refused() {
    block_on(async {
        let (model, gate) = WaitingProvider::new();
        let server = serve(model as Arc<dyn Provider>).await;
        let mut socket = Socket::open(&server).await;
        for _ in 0..10 {
            socket.say(json!({"input": "x", "store": false})).await;
        }
        let error = loop {
            let event = socket.hear().await.unwrap();
            if event["type"] == "error" {
                break event;
            }
        };
        assert_eq!(refusal(&error), (429, "rate_limit_exceeded".to_owned()));
        gate.add_permits(9);
        let mut whole = 0;
        while whole < 9 {
            let event = socket.hear().await.unwrap();
            assert_ne!(event["type"], "error");
            whole += usize::from(event["type"] == "response.completed");
        }
    });
}

#[test]
fn without_an_upgrade_the_path_lists_the_callers_responses() {
    block_on(async {
        let (server, _) = scripted([runs("c1", "1 + 1"), says("Two.")]).await;
        let asked = json!({"input": "How much?", "tools": interpreter_tool()});
        let response = server.create(asked).await.ok();
        let id = response["id"].as_str().unwrap();
        let listed = server.get("responses?limit=1").await.ok();
        let first = &listed["data"][0];
        assert_eq!(
            (&first["id"], &first["status"]),
            (&response["id"], &json!("completed"))
        );
        assert_eq!(first["output_counts"]["code_interpreter_call"], 1, "{first}");
        assert_eq!(first["output"], Value::Null);
        // What the model read of its code, in the order in which it did.
        let path = format!("responses/{id}/model_items");
        let items = server.get(&format!("{path}?order=asc")).await.ok();
        let kinds = types(&items["data"]);
        assert_eq!(
            kinds,
            ["message", "function_call", "function_call_output", "message"],
            "{items}"
        );
        assert!(items["data"][2]["output"].to_string().contains('2'), "{items}");
        let other = server.of("bob");
        assert_eq!(other.get("responses").await.ok()["data"], json!([]));
        assert_eq!(other.get(&path).await.error(), (404, "response_not_found"));
        let after = server.get("responses?after=resp_other").await;
        assert_eq!(after.error(), (400, "invalid_value"));
    });
}

#[test]
fn events_have_the_lane_of_their_request() {
    block_on(async {
        let (server, _) = scripted([says("ok")]).await;
        let mut socket = Socket::open(&server).await;
        let events = socket.turn(json!({"input": "x", "stream_id": "left"})).await;
        Order::check(&events).unwrap();
        assert!(
            events.iter().all(|event| event["stream_id"] == "left"),
            "{events:?}"
        );
        let missing = json!({"input": "x", "stream_id": "right", "previous_response_id": "resp_none"});
        let refused = socket.turn(missing).await;
        assert_eq!(refused[0]["stream_id"], "right");
        for lane in [json!(""), json!("x".repeat(257)), json!(7)] {
            let (status, code) = socket.refused(json!({"input": "x", "stream_id": lane})).await;
            assert_eq!((status, code.as_str()), (400, "invalid_value"));
        }
    });
}

#[test]
fn input_for_a_response_that_runs_is_returned_while_it_runs() {
    block_on(async {
        let (server, _) = scripted([runs("c1", "while True: pass")]).await;
        let mut socket = Socket::open(&server).await;
        socket
            .say(json!({"input": "x", "tools": interpreter_tool(), "stream_id": "left"}))
            .await;
        let id = socket.hear().await.unwrap()["response"]["id"].clone();
        let steer = json!({"type": "response.steer", "previous_response_id": id, "input": "faster"});
        for (message, code, lane) in [
            (steer, "steering_not_supported", json!("left")),
            (
                json!({"type": "response.steer", "input": "faster"}),
                "invalid_input",
                Value::Null,
            ),
        ] {
            socket.0.send(Message::text(message.to_string())).await.unwrap();
            let failed = loop {
                let event = socket.hear().await.unwrap();
                if event["type"] == "response.steer.failed" {
                    break event;
                }
            };
            assert_eq!(
                (&failed["error"]["code"], &failed["stream_id"]),
                (&json!(code), &lane)
            );
            assert_eq!(failed["steer"]["input"], "faster");
            assert_eq!(
                failed["steer"]["previous_response_id"],
                message["previous_response_id"]
            );
        }
    });
}
