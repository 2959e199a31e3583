//! Clients that violate the protocol: they lose their connection and sandbox, without affecting
//! others.

use bytes::{BufMut, Bytes, BytesMut};
use cellblock_remote::MAX_MESSAGE;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{KEY, Pair, backend, block_on, lease, until};

/// A connection that is driven by hand.
pub(crate) struct Raw(WebSocketStream<TcpStream>);

impl Raw {
    pub(crate) async fn connect(pair: &Pair) -> Self {
        let url = pair.server.url();
        let address = url.trim_start_matches("ws://").split('/').next().unwrap();
        let mut request = url.as_str().into_client_request().unwrap();
        let key = format!("Bearer {KEY}").parse().unwrap();
        request.headers_mut().insert("authorization", key);
        let stream = TcpStream::connect(address).await.unwrap();
        let mut raw = Self(client_async(request, stream).await.unwrap().0);
        assert_eq!(raw.hears().await["type"], "hello");
        raw
    }

    pub(crate) async fn send(&mut self, message: impl Into<Bytes>) {
        // A server that has cut the connection reads nothing more.
        let _ = self.0.send(Message::Binary(message.into())).await;
    }

    async fn says(&mut self, message: &Value) {
        let mut bytes = vec![1];
        bytes.extend(message.to_string().into_bytes());
        self.send(bytes).await;
    }

    /// Returns the next control message.
    async fn hears(&mut self) -> Value {
        loop {
            let message = self.0.next().await.unwrap().unwrap().into_data();
            if message.first() == Some(&1) {
                return serde_json::from_slice(&message[1..]).unwrap();
            }
        }
    }

    pub(crate) async fn ask(&mut self, ask: Value) -> Value {
        self.says(&json!({"type": "ask", "id": 1, "ask": ask})).await;
        self.hears().await
    }

    /// Creates a sandbox with a kernel on stream 1.
    async fn with_kernel(pair: &Pair) -> Self {
        let mut raw = Self::connect(pair).await;
        let made = raw.ask(json!({"ask": "create", "limits": {}})).await;
        assert_eq!(made["answer"]["answer"], "sandbox", "{made}");
        let started = raw.ask(json!({"ask": "start_kernel", "stream": 1})).await;
        assert_eq!(started["answer"]["answer"], "kernel", "{started}");
        raw
    }

    async fn until_it_is_cut(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

fn data(stream: u32, bytes: &[u8]) -> Bytes {
    let mut message = BytesMut::new();
    message.put_u8(2);
    message.put_u32(stream);
    message.extend_from_slice(bytes);
    message.freeze()
}

/// Encodes a frame with a given header.
fn frame(header: &Value, blobs: &[u8]) -> Vec<u8> {
    let header = header.to_string().into_bytes();
    let mut bytes = BytesMut::new();
    bytes.put_u32(u32::try_from(header.len() + blobs.len() + 4).unwrap());
    bytes.put_u32(u32::try_from(header.len()).unwrap());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(blobs);
    bytes.to_vec()
}

/// Checks that the sender of these messages is cut off for this reason, and that others continue.
async fn is_cut_for(pair: &Pair, messages: Vec<Bytes>, reason: &str) {
    let mut raw = Raw::with_kernel(pair).await;
    for message in messages {
        raw.send(message).await;
    }
    raw.until_it_is_cut().await;
    until("ended", || pair.site.lent.lock().len() == 1).await;
    until("told", || !pair.site.cuts.lock().is_empty()).await;
    let cuts: Vec<String> = pair.site.cuts.lock().drain(..).collect();
    assert_eq!(cuts.len(), 1, "{cuts:?}");
    assert!(cuts[0].contains(reason), "{reason}: {cuts:?}");
}

#[test]
fn a_client_that_violates_the_protocol_loses_only_its_connection() {
    block_on(async {
        let pair = backend().await;
        let mut other = lease(&pair).await;
        let client = "the client broke the protocol: ";
        let unread =
            |column: u32| format!("{client}a message that cannot be read at line 1, column {column}");
        for (message, reason) in [
            (
                Bytes::from_static(b"garbage"),
                "it sent a message of kind 103 with 7 bytes",
            ),
            (Bytes::new(), "it sent an empty message"),
            (
                Bytes::from(vec![1; MAX_MESSAGE + 1]),
                "it sent a message of 1048577 bytes, the limit is 1048576",
            ),
            (
                Bytes::from(vec![2; 100_000]),
                "it sent a message of kind 2 with 100000 bytes",
            ),
            (
                Bytes::from_static(&[3, 0, 0, 0, 1, 0, 4, 0, 1]),
                "it sent credit for bytes that were never sent",
            ),
        ] {
            is_cut_for(&pair, vec![message], reason).await;
        }
        is_cut_for(&pair, vec![Bytes::from_static(b"\x01{]")], &unread(2)).await;
        let forged =
            json!({"type": "ask", "id": 1, "ask": {"ask": "create", "limits": {"memory_bytes": -1}}});
        let forged: Bytes = [&[1][..], forged.to_string().as_bytes()].concat().into();
        is_cut_for(&pair, vec![forged], "a message that cannot be read").await;
        // No caller waits for any of the responses.
        let warm = Bytes::from_static(b"\x01{\"type\":\"ask\",\"id\":1,\"ask\":{\"ask\":\"audit\"}}");
        let mut raw = Raw::with_kernel(&pair).await;
        for _ in 0..100 {
            raw.send(warm.clone()).await;
        }
        drop(raw);
        until("ended", || pair.site.lent.lock().len() == 1).await;
        assert_eq!(
            crate::support::execute(&mut other.kernel, "6 * 7").await,
            crate::support::shows(42)
        );
    });
}

#[test]
fn a_client_that_floods_a_kernel_is_cut_off_at_the_window() {
    block_on(async {
        let pair = backend().await;
        let other = lease(&pair).await;
        let flood = (0..200).map(|_| data(1, &vec![0; 32 * 1024])).collect();
        is_cut_for(
            &pair,
            flood,
            "it sent more than the permitted 262144 bytes of a stream",
        )
        .await;
        drop(other);
    });
}

#[test]
fn a_guest_never_sees_invalid_requests() {
    block_on(async {
        let pair = backend().await;
        let other = lease(&pair).await;
        for bytes in [
            vec![0xff; 64],
            frame(&json!({"type": "no_such_request"}), b""),
            frame(&json!({"type": "stats", "request": 1_u64 << 62}), b""),
            frame(
                &json!({"type": "write", "request": 1, "path": "/workspace/x", "mode": 420, "blobs": [1, 1]}),
                b"ab",
            ),
        ] {
            is_cut_for(&pair, vec![data(0, &bytes)], "the client broke the protocol: ").await;
        }
        drop(other);
    });
}

#[test]
fn impossible_requests_are_rejected_and_the_connection_continues() {
    block_on(async {
        let pair = backend().await;
        let mut raw = Raw::connect(&pair).await;
        let reason = |answer: Value| {
            answer["refusal"]["reason"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        for (ask, why) in [
            (json!({"ask": "start_kernel", "stream": 1}), "there is no sandbox"),
            (
                json!({"ask": "rescue", "stream": 1, "pid": 1}),
                "there was no kernel",
            ),
            (json!({"ask": "usage"}), "there is no sandbox"),
            (json!({"ask": "mount", "name": "x"}), "no file was sent"),
            (
                json!({"ask": "upload", "stream": 5, "bytes": 1}),
                "there is no sandbox",
            ),
        ] {
            assert_eq!(reason(raw.ask(ask).await), why);
        }
        raw.ask(json!({"ask": "create", "limits": {}})).await;
        let again = raw.ask(json!({"ask": "create", "limits": {}})).await;
        assert_eq!(reason(again), "a connection can have only one sandbox");
        // An announced file that does not come, and one that is longer.
        for sent in [&b"ab"[..], b"abcdef"] {
            let ready = raw.ask(json!({"ask": "upload", "stream": 5, "bytes": 4})).await;
            assert_eq!(ready["answer"]["answer"], "done", "{ready}");
            raw.send(data(5, sent)).await;
            raw.send(Bytes::from_static(&[4, 0, 0, 0, 5])).await;
            let mounted = raw.ask(json!({"ask": "mount", "name": "x"})).await;
            let actual = sent.len();
            assert_eq!(
                reason(mounted),
                format!("a file of 4 bytes was announced, but {actual} bytes arrived")
            );
        }
        // The guest and the keep reject a name that leads outside.
        let ready = raw.ask(json!({"ask": "upload", "stream": 6, "bytes": 1})).await;
        assert_eq!(ready["answer"]["answer"], "done", "{ready}");
        raw.send(data(6, b"x")).await;
        let mounted = raw.ask(json!({"ask": "mount", "name": "../../etc/passwd"})).await;
        assert_eq!(mounted["type"], "refused", "{mounted}");
        let started = raw.ask(json!({"ask": "start_kernel", "stream": 7})).await;
        assert_eq!(started["answer"]["answer"], "kernel", "{started}");
        drop(raw);
        until("ended", || pair.site.lent.lock().is_empty()).await;
    });
}
