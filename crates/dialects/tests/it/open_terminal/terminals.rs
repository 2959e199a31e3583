//! Terminals of a person, and pages of programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::open_terminal::OpenTerminalOptions;
use cellblock_testkit::wait::until_ok;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::{Chat, server};
use crate::support::{DialectServer, KEYS, KeyRing, RequestExt, block_on};

type TerminalSocket =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn connect(server: &DialectServer, chat: &Chat, id: &str, token: &str) -> TerminalSocket {
    let url = format!(
        "ws://{}/open-terminal/api/terminals/{id}?user_id=x",
        server.address
    );
    let mut request = url.into_client_request().unwrap();
    request
        .headers_mut()
        .insert("x-user-id", chat.user.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let first = json!({"type": "auth", "token": token, "chat_id": chat.id});
    socket.send(Message::text(first.to_string())).await.unwrap();
    socket
}

/// Reads until the terminal shows something, or the connection is closed, whose code it is then.
async fn until(socket: &mut TerminalSocket, words: &str) -> Result<String, u16> {
    let mut seen = String::new();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => seen.push_str(&String::from_utf8_lossy(&bytes)),
            Message::Close(frame) => return Err(frame.unwrap().code.into()),
            _ => {}
        }
        if seen.contains(words) {
            return Ok(seen);
        }
    }
    panic!("the connection broke off after {seen:?}");
}

#[test]
fn a_terminal_shows_what_is_typed_and_a_model_can_look() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let (status, _) = chat.get("/api/terminals/user/output").await;
        assert_eq!(status, 404);
        let made = chat.done("/api/terminals", json!({})).await;
        let id = made["id"].as_str().unwrap();
        assert!(made["created_at"].as_str().unwrap().ends_with('Z'), "{made}");
        let mut socket = connect(&server, &chat, id, chat.key).await;
        let resize = json!({"type": "resize", "cols": 123, "rows": 40});
        socket.send(Message::text(resize.to_string())).await.unwrap();
        socket
            .send(Message::binary(b"stty size; pwd\n".to_vec()))
            .await
            .unwrap();
        let seen = until(&mut socket, "/workspace\r\n").await.unwrap();
        assert!(seen.contains("40 123"), "{seen}");
        chat.done("/api/terminals/user/input", json!({"input": "echo $((6 * 7))\n"}))
            .await;
        until(&mut socket, "42\r\n").await.unwrap();
        let shown = chat.read("/api/terminals/user/output").await;
        assert!(shown["output"].as_str().unwrap().contains("42\r\n"), "{shown}");
        let mut second = connect(&server, &chat, id, chat.key).await;
        assert_eq!(until(&mut second, "x").await, Err(4009));
        assert_eq!(chat.read("/execute").await, json!([]));
        socket.send(Message::binary(b"exit\n".to_vec())).await.unwrap();
        assert_eq!(until(&mut socket, "never").await, Err(1000));
        // The client hears of the end before the list does.
        until_ok(async || {
            let listed = chat.read("/api/terminals").await;
            if listed == json!([]) { Ok(()) } else { Err(listed) }
        })
        .await;
    });
}

#[test]
fn a_terminal_opens_only_for_whom_it_was_made() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let made = chat.done("/api/terminals", json!({})).await;
        let id = made["id"].as_str().unwrap();
        let mut wrong = connect(&server, &chat, id, "ck_other").await;
        assert_eq!(until(&mut wrong, "$").await, Err(4001));
        let bob = Chat {
            key: KEYS[1].0,
            ..chat.clone()
        };
        let mut other = connect(&server, &bob, id, bob.key).await;
        assert_eq!(until(&mut other, "$").await, Err(4004));
        let other = Chat {
            user: "user-2",
            ..chat.clone()
        };
        let mut other = connect(&server, &other, id, chat.key).await;
        assert_eq!(until(&mut other, "$").await, Err(4004));
        let (status, _) = bob.delete(&format!("/api/terminals/{id}")).await;
        assert_eq!(status, 404);
        let (status, _) = chat.delete(&format!("/api/terminals/{id}")).await;
        assert_eq!(status, 200);
    });
}

#[test]
fn a_terminal_closes_when_the_key_of_its_first_message_is_revoked() {
    block_on(async {
        let revoked = Arc::new(AtomicBool::new(false));
        let keys = KeyRing::Until("ck_", Arc::clone(&revoked));
        let options = DialectsOptions {
            open_terminal: Some(OpenTerminalOptions::default()),
            ..DialectsOptions::default()
        };
        let server = DialectServer::with(&options, keys, |_| {}).await;
        let chat = Chat::new(&server);
        let made = chat.done("/api/terminals", json!({})).await;
        let mut socket = connect(&server, &chat, made["id"].as_str().unwrap(), chat.key).await;
        socket
            .send(Message::binary(b"echo o''n\n".to_vec()))
            .await
            .unwrap();
        until(&mut socket, "on").await.unwrap();
        revoked.store(true, Ordering::Relaxed);
        assert_eq!(until(&mut socket, "never").await, Err(4001));
    });
}

#[test]
fn a_page_of_a_program_is_passed_on_in_an_origin_of_its_own() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done(
            "/files/write",
            json!({"path": "www/index.html", "content": "<h1>hello</h1>"}),
        )
        .await;
        chat.done(
            "/execute?wait=0",
            json!({"command": "python3 -m http.server --bind 127.0.0.1 8123 -d www"}),
        )
        .await;
        let listens = async || chat.read("/ports").await["ports"][0]["port"] == 8123;
        cellblock_testkit::wait::until_ok(async || listens().await.then_some(()).ok_or("no port")).await;
        let page = chat
            .request(Method::GET, "/proxy/8123/index.html?a=b")
            .sent()
            .await;
        assert_eq!(page.status(), 200);
        let policy = page.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            policy.starts_with("sandbox ") && !policy.contains("same-origin"),
            "{policy}"
        );
        assert_eq!(page.text().await.unwrap(), "<h1>hello</h1>");
        let root = chat.request(Method::GET, "/proxy/8123/").sent().await;
        assert_eq!(root.text().await.unwrap(), "<h1>hello</h1>");
        let bob = Chat {
            key: KEYS[1].0,
            ..chat.clone()
        };
        let (status, _) = bob.get("/proxy/8123/").await;
        assert_eq!(status, 404);
        assert_eq!(bob.read("/ports").await, json!({"ports": []}));
        let (status, closed) = chat.get("/proxy/8124/").await;
        assert_eq!(status, 502, "{closed}");
    });
}
