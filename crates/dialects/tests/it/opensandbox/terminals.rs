//! Terminals, as a client of WebSockets uses them: the libraries have none.

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{SandboxClient, open};
use crate::support::{RequestExt, block_on};

/// A connection to a terminal.
struct TerminalSocket {
    messages: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    /// Bytes of stdout, of stderr, and of what was written before, with their first byte as a message has it.
    seen: [Vec<u8>; 4],
    /// Offset at which to continue after what was written before.
    next: u64,
    /// Text messages.
    told: Vec<Value>,
    closed: Option<u16>,
}

impl SandboxClient {
    async fn terminal(&self, request: Value) -> String {
        let made = self.request(Method::POST, "/pty").json(&request).sent().await;
        assert_eq!(made.status(), StatusCode::CREATED);
        let made: Value = made.json().await.unwrap();
        made["session_id"].as_str().unwrap().to_owned()
    }

    /// Connects; the status of an answer that is none of a WebSocket is the error.
    async fn attach(&self, id: &str, query: &str) -> Result<TerminalSocket, u16> {
        let address = self.execd.replacen("http", "ws", 1);
        let mut request = format!("{address}/pty/{id}/ws{query}")
            .into_client_request()
            .unwrap();
        let token = self.token.parse().unwrap();
        request.headers_mut().insert("x-execd-access-token", token);
        match tokio_tungstenite::connect_async(request).await {
            Ok((messages, _)) => Ok(TerminalSocket {
                messages,
                seen: Default::default(),
                next: 0,
                told: Vec::new(),
                closed: None,
            }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

impl TerminalSocket {
    async fn typed(&mut self, text: &str) {
        let message = [&[0][..], text.as_bytes()].concat();
        self.messages.send(Message::binary(message)).await.unwrap();
    }

    async fn tell(&mut self, message: Value) {
        self.messages
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    fn text(&self, stream: usize) -> String {
        String::from_utf8_lossy(&self.seen[stream]).into_owned()
    }

    /// Reads messages until something is there.
    async fn until<T>(&mut self, found: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            match self.messages.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    let stream = usize::from(bytes[0]);
                    let from = if stream == 3 { 9 } else { 1 };
                    if stream == 3 {
                        self.next = u64::from_be_bytes(bytes[1..9].try_into().unwrap());
                    }
                    self.seen[stream].extend(&bytes[from..]);
                }
                Some(Ok(Message::Text(text))) => self.told.push(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => self.closed = frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                end => panic!(
                    "the connection ended with {end:?} after {:?}, {:?}",
                    self.told,
                    self.text(1)
                ),
            }
        }
    }

    async fn shows(&mut self, words: &str) {
        self.until(|it| it.text(1).contains(words).then_some(())).await;
    }

    async fn message(&mut self, kind: &str) -> Value {
        self.until(|it| it.told.iter().find(|it| it["type"] == kind).cloned())
            .await
    }

    async fn close(&mut self) -> u16 {
        self.until(|it| it.closed).await
    }
}

#[test]
fn a_terminal_has_a_size_and_outlives_its_connection() {
    block_on(async {
        let opened = open().await;
        let id = opened.terminal(json!({"cwd": "/tmp"})).await;
        let path = format!("/pty/{id}");
        let status = opened.request(Method::GET, &path).read::<Value>().await;
        assert_eq!(
            status,
            json!({"session_id": id, "running": false, "output_offset": 0, "launch_attempted": false})
        );
        let mut socket = opened.attach(&id, "").await.unwrap();
        let connected = socket.message("connected").await;
        assert_eq!(
            connected,
            json!({"type": "connected", "session_id": id, "mode": "pty"})
        );
        socket
            .tell(json!({"type": "resize", "cols": 123, "rows": 40}))
            .await;
        socket.typed("stty size; pwd; echo $COLOR; kept=42\n").await;
        socket.shows("40 123\r\n/tmp\r\nblue\r\n").await;
        socket.tell(json!({"type": "ping"})).await;
        socket.message("pong").await;
        socket.tell(json!({"type": "dance"})).await;
        assert_eq!(socket.message("error").await["code"], "INVALID_FRAME");
        socket.messages.close(None).await.unwrap();

        // The same shell, and what it showed before.
        let again = async || opened.attach(&id, "?since=0").await;
        let mut socket = cellblock_testkit::wait::until_ok(again).await;
        socket.message("connected").await;
        assert!(socket.text(3).contains("40 123\r\n"), "{}", socket.text(3));
        let status: Value = opened.request(Method::GET, &path).read().await;
        assert_eq!(
            (&status["running"], &status["output_offset"]),
            (&json!(true), &json!(socket.next))
        );
        socket.typed("echo $((kept + 1))\n").await;
        socket.shows("43\r\n").await;
        socket.typed("exit 3\n").await;
        assert_eq!(socket.message("exit").await["exit_code"], 3);
        assert_eq!(socket.close().await, 1000);
        let gone = opened.request(Method::DELETE, &path).status().await;
        assert_eq!(gone, StatusCode::OK);
        assert_eq!(
            opened.request(Method::GET, &path).status().await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(opened.attach(&id, "").await.err(), Some(404));
    });
}

#[test]
fn without_a_terminal_its_streams_are_apart_and_signals_reach_it() {
    block_on(async {
        let opened = open().await;
        let command = "echo out; echo err >&2; read line; echo \"got $line\"; trap 'exit 5' INT; echo \
                       ready; sleep 1000 & wait";
        let id = opened.terminal(json!({"command": command})).await;
        let mut socket = opened.attach(&id, "?pty=0").await.unwrap();
        assert_eq!(socket.message("connected").await["mode"], "pipe");
        socket.tell(json!({"type": "stdin", "data": "it\n"})).await;
        socket.shows("ready\n").await;
        // Which of two streams is read first shows only if time is between them.
        socket.until(|it| it.text(2).contains('\n').then_some(())).await;
        assert_eq!(
            (socket.text(1).as_str(), socket.text(2).as_str()),
            ("out\ngot it\nready\n", "err\n")
        );
        socket.tell(json!({"type": "signal", "signal": "SIGINT"})).await;
        assert_eq!(socket.message("exit").await["exit_code"], 5);
    });
}

#[test]
fn a_terminal_has_one_client_which_another_can_take_over() {
    block_on(async {
        let opened = open().await;
        let id = opened.terminal(json!({})).await;
        let mut first = opened.attach(&id, "").await.unwrap();
        first.message("connected").await;
        assert_eq!(opened.attach(&id, "").await.err(), Some(409));
        let mut second = opened.attach(&id, "?takeover=1").await.unwrap();
        second.message("connected").await;
        assert_eq!(first.close().await, 4001);
        second.typed("echo $((6 * 7))\n").await;
        second.shows("42\r\n").await;
        let gone = opened
            .request(Method::DELETE, &format!("/pty/{id}"))
            .status()
            .await;
        assert_eq!(gone, StatusCode::OK);
        assert_eq!(second.message("exit").await["exit_code"], 137);
    });
}

#[test]
fn terminals_that_cannot_be_opened_say_why() {
    block_on(async {
        let opened = open().await;
        let wrong = opened.request(Method::POST, "/pty").body("{");
        assert_eq!(wrong.status().await, StatusCode::BAD_REQUEST);
        let id = opened.terminal(json!({})).await;
        let page = opened.request(Method::GET, &format!("/pty/{id}/ws"));
        assert_eq!(page.status().await, StatusCode::BAD_REQUEST);
        let id = opened.terminal(json!({"cwd": "/nowhere"})).await;
        let mut socket = opened.attach(&id, "").await.unwrap();
        let error = socket.message("error").await;
        assert_eq!(error["code"], "START_FAILED");
        assert!(error["error"].as_str().unwrap().contains("`/nowhere`"), "{error}");
        let mut other = open().await;
        (other.execd, other.token) = (opened.execd.clone(), "wrong".to_owned());
        assert_eq!(other.attach(&id, "").await.err(), Some(404));
    });
}
