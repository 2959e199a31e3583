//! A WebSocket whose turn needs a container of another gateway.

use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::IntoResponse as _;
use cellblock_testkit::require;
use futures_util::{SinkExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{Pair, block_on, in_container, model, pair, printed, three_turns};

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

/// Serves these routes as another gateway; returns the path of a session there.
async fn stands_for_a_gateway(pair: &Pair, routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let row = format!("('aaaaaaaaaaaa', 9000000000000000, 'http://{address}')");
    pair.sql(format!(
        "INSERT INTO gateways (id, expires_ms, address) VALUES {row}"
    ))
    .await;
    format!("/v1/sessions/sess_aaaaaaaaaaaa_{}", "0".repeat(40))
}

async fn connect(pair: &Pair, path: &str) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
    let url = format!("ws://{}{path}", pair.two.address);
    let mut request = url.into_client_request().unwrap();
    let key = format!("Bearer {}", pair.two.key);
    request
        .headers_mut()
        .insert("authorization", key.parse().unwrap());
    connect_async(request).await.unwrap().0
}

#[test]
fn streams_and_sockets_of_a_gateway_that_ends_in_the_middle_end_in_words() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let breaks = |upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>| async {
            let Ok(upgrade) = upgrade else {
                let events = "event: cell.stdout\ndata: {\"sequence_number\":1}\n\nevent: cell.std";
                let killed = async {
                    // The answer has begun by then.
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    Err(std::io::Error::other("killed"))
                };
                let pieces = stream::iter([Ok(events)]).chain(stream::once(killed));
                let body = axum::body::Body::from_stream(pieces);
                return ([("content-type", "text/event-stream")], body).into_response();
            };
            upgrade.on_upgrade(|mut socket| async move {
                socket.send("one".into()).await.unwrap();
            })
        };
        let session = stands_for_a_gateway(&pair, axum::Router::new().fallback(breaks)).await;
        let cell = json!({"code": "1", "stream": true});
        let answer = pair.two.start(&format!("{session}/cells"), &cell).await;
        let read = answer.text().await.unwrap();
        let rest = read.strip_prefix("event: cell.stdout\ndata: {\"sequence_number\":1}\n\n");
        let rest = rest.unwrap_or_else(|| panic!("{read}"));
        assert!(rest.starts_with("event: cell.error\ndata: {"), "{rest}");
        let event: Value = serde_json::from_str(rest.trim().split_once("data: ").unwrap().1).unwrap();
        assert_eq!(
            (&event["type"], &event["sequence_number"]),
            (&json!("cell.error"), &json!(2))
        );
        assert_eq!(event["error"]["code"], "gateway_lost");
        let message = event["error"]["message"].as_str().unwrap();
        assert!(message.contains("run the cell again there unless"), "{message}");

        let mut socket = connect(&pair, &format!("{session}/processes/p1/terminal")).await;
        let mut heard = Vec::new();
        while let Some(message) = tokio::time::timeout(Duration::from_mins(1), socket.next())
            .await
            .unwrap()
        {
            heard.push(message.unwrap());
        }
        let [Message::Text(first), Message::Close(Some(close))] = &heard[..] else {
            panic!("{heard:?}");
        };
        assert_eq!(first.as_str(), "one");
        assert_eq!(u16::from(close.code), 1011);
        assert!(
            close.reason.as_str().contains("ended or cannot be reached"),
            "{close:?}"
        );
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
        let session = stands_for_a_gateway(&pair, axum::Router::new().fallback(echo)).await;
        let mut socket = connect(&pair, &format!("{session}/cells")).await;
        for text in ["one", "two"] {
            socket.send(Message::text(text)).await.unwrap();
            let echoed = tokio::time::timeout(Duration::from_mins(1), socket.next()).await;
            assert_eq!(echoed.unwrap().unwrap().unwrap(), Message::text(text));
        }
    });
}
