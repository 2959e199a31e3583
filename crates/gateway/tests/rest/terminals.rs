//! Terminals of processes over WebSockets.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::support::{Api, block_on};

const PATIENCE: Duration = Duration::from_mins(1);

struct Terminal {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    seen: String,
}

impl Terminal {
    async fn open(api: &Api, path: &str) -> Self {
        Self {
            socket: api.socket(path).await.unwrap(),
            seen: String::new(),
        }
    }

    async fn types(&mut self, text: &str) {
        self.socket
            .send(Message::binary(text.as_bytes().to_vec()))
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> Message {
        let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        heard.expect("nothing was heard").unwrap().unwrap()
    }

    /// Reads until the program has written this; drops everything up to there.
    async fn shows(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.hear().await {
                Message::Binary(bytes) => self.seen += std::str::from_utf8(&bytes).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?} instead of {text:?}, after {:?}", self.seen),
            }
        }
    }

    /// Reads to the end; returns the last text message, and the code and reason of the close.
    async fn ends(&mut self) -> (Value, CloseCode, String) {
        let mut end = Value::Null;
        loop {
            match self.hear().await {
                Message::Text(text) => end = serde_json::from_str(&text).unwrap(),
                Message::Close(Some(frame)) => return (end, frame.code, frame.reason.as_str().to_owned()),
                Message::Close(None) => panic!("closed without a reason"),
                _ => {}
            }
        }
    }
}

/// Starts a program with a terminal; returns its path.
async fn start(api: &Api, session: &str, command: &[&str]) -> String {
    let order = json!({"command": command, "terminal": {"rows": 24, "columns": 80}});
    let (status, started) = api.post(&format!("{session}/processes"), &order).await;
    assert_eq!(
        (status, &started["terminal"]),
        (StatusCode::CREATED, &json!(true)),
        "{started}"
    );
    format!("{session}/processes/{}", started["id"].as_str().unwrap())
}

#[test]
fn a_terminal_is_used_resized_left_and_opened_again() {
    block_on(async {
        let api = Api::of("terminals").await;
        let session = api.session(&json!({})).await;
        let process = start(&api, &session, &["bash", "--norc", "-i"]).await;
        let path = format!("{process}/terminal");
        let mut terminal = Terminal::open(&api, &path).await;
        terminal.types("stty size; echo on''ce\n").await;
        terminal.shows("24 80\r\nonce\r\n").await;
        let resize = json!({"resize": {"rows": 30, "columns": 100}});
        terminal
            .socket
            .send(Message::text(resize.to_string()))
            .await
            .unwrap();
        terminal.types("stty size\n").await;
        terminal.shows("30 100\r\n").await;
        drop(terminal);
        // Two clients see the same, from where each wants.
        let mut all = Terminal::open(&api, &path).await;
        let mut other = Terminal::open(&api, &format!("{path}?offset=5")).await;
        all.shows("once\r\n").await;
        other.types("exit 9\n").await;
        for client in [&mut all, &mut other] {
            let (end, code, reason) = client.ends().await;
            assert_eq!(
                end,
                json!({"end": {"state": "exited", "exit_code": 9, "signal": null}})
            );
            assert_eq!((code, reason.as_str()), (CloseCode::Normal, "exited with code 9"));
        }
        api.end(&session).await;
    });
}

#[test]
fn a_client_that_does_not_read_stops_nobody() {
    block_on(async {
        let api = Api::of("terminals").await;
        let session = api.session(&json!({})).await;
        let flood = start(&api, &session, &["yes"]).await;
        let _deaf = Terminal::open(&api, &format!("{flood}/terminal")).await;
        let mut reader = Terminal::open(&api, &format!("{flood}/terminal")).await;
        for _ in 0..100 {
            reader.hear().await;
        }
        let shell = start(&api, &session, &["cat"]).await;
        let mut terminal = Terminal::open(&api, &format!("{shell}/terminal")).await;
        terminal.types("hello\n").await;
        terminal.shows("hello\r\nhello\r\n").await;
        assert_eq!(api.run(&session, "40 + 2").await["outputs"][0]["value"], 42);
        reader.types("\x03").await;
        let (end, ..) = reader.ends().await;
        assert_eq!(end["end"]["signal"], "SIGINT");
        api.end(&session).await;
    });
}

#[test]
fn what_cannot_be_opened_or_understood_is_refused() {
    block_on(async {
        let api = Api::of("terminals").await;
        let session = api.session(&json!({})).await;
        let (_, plain) = api
            .post(
                &format!("{session}/processes"),
                &json!({"command": ["sleep", "1000"]}),
            )
            .await;
        let plain = format!("{session}/processes/{}", plain["id"].as_str().unwrap());
        let process = start(&api, &session, &["cat"]).await;
        let other = Api::of("terminals of another").await;
        for (api, path, status) in [
            (&api, format!("{plain}/terminal"), StatusCode::BAD_REQUEST),
            (
                &api,
                format!("{session}/processes/p99/terminal"),
                StatusCode::NOT_FOUND,
            ),
            (
                &api,
                format!("{process}/terminal?from=1"),
                StatusCode::BAD_REQUEST,
            ),
            (&other, format!("{process}/terminal"), StatusCode::NOT_FOUND),
        ] {
            match api.socket(&path).await {
                Err(Error::Http(answer)) => assert_eq!(answer.status().as_u16(), status.as_u16(), "{path}"),
                other => panic!("{path}: {other:?}"),
            }
        }
        let (status, problem) = api.get(&format!("{process}/terminal")).await;
        assert_eq!(
            (status, &problem["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("websocket_expected"))
        );
        for wrong in [
            "{}",
            "[]",
            "resize",
            r#"{"resize": {"rows": 0, "columns": 1}}"#,
            r#"{"resize": {"rows": 1, "columns": 70000}}"#,
            r#"{"resize": {"rows": 1, "columns": 1}, "more": 1}"#,
        ] {
            let mut terminal = Terminal::open(&api, &format!("{process}/terminal")).await;
            terminal.socket.send(Message::text(wrong)).await.unwrap();
            let (_, code, reason) = terminal.ends().await;
            assert_eq!(code, CloseCode::Invalid, "{wrong}: {reason}");
        }
        for wrong in [
            json!({"rows": 24}),
            json!({"rows": 0, "columns": 80}),
            json!({"rows": 1, "columns": -1}),
        ] {
            let order = json!({"command": ["cat"], "terminal": wrong});
            let (status, _) = api.post(&format!("{session}/processes"), &order).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{order}");
        }
        api.end(&session).await;
    });
}
