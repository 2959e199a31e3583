//! A WebSocket whose turn needs a container of another gateway.

use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use cellblock_testkit::require;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::{block_on, in_container, model, pair, printed, three_turns};

#[test]
fn turns_of_a_websocket_go_on_in_the_container_of_another_gateway() {
    require!(Postgres);
    block_on(async {
        let pair = pair(three_turns()).await;
        let auto = json!({"type": "auto"});
        let mut last = pair.one.respond(in_container(&auto)).await;
        let mut request = format!("ws://{}/v1/responses", pair.two.address)
            .into_client_request()
            .unwrap();
        let key = format!("Bearer {}", pair.two.key);
        request
            .headers_mut()
            .insert("authorization", key.parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        for expected in ["2\n", "3\n"] {
            let mut turn = model(in_container(&auto));
            turn["type"] = json!("response.create");
            turn["previous_response_id"] = last["id"].clone();
            socket.send(Message::text(turn.to_string())).await.unwrap();
            last = loop {
                let message = tokio::time::timeout(Duration::from_mins(1), socket.next()).await;
                let Message::Text(text) = message.unwrap().unwrap().unwrap() else {
                    continue;
                };
                let event: Value = serde_json::from_str(&text).unwrap();
                assert_ne!(event["type"], "error", "{event}");
                if event["type"] == "response.completed" {
                    break event["response"].clone();
                }
            };
            assert_eq!(printed(&last), expected);
        }
    });
}

#[test]
fn a_websocket_of_a_session_is_passed_to_the_gateway_that_has_it() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        // Stands for a gateway, and echoes messages whatever the path is.
        let echo = |upgrade: WebSocketUpgrade| async {
            upgrade.on_upgrade(|mut socket| async move {
                while let Some(Ok(message)) = socket.recv().await {
                    if socket.send(message).await.is_err() {
                        break;
                    }
                }
            })
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(echo);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let row = format!("('aaaaaaaaaaaa', 9000000000000000, 'http://{address}')");
        pair.sql(format!(
            "INSERT INTO gateways (id, expires_ms, address) VALUES {row}"
        ))
        .await;
        let session = format!("sess_aaaaaaaaaaaa_{}", "0".repeat(40));
        let url = format!("ws://{}/v1/sessions/{session}/cells", pair.two.address);
        let mut request = url.into_client_request().unwrap();
        let key = format!("Bearer {}", pair.two.key);
        request
            .headers_mut()
            .insert("authorization", key.parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        for text in ["one", "two"] {
            socket.send(Message::text(text)).await.unwrap();
            let echoed = tokio::time::timeout(Duration::from_mins(1), socket.next()).await;
            assert_eq!(echoed.unwrap().unwrap().unwrap(), Message::text(text));
        }
    });
}
