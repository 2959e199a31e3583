//! Upgrades of connections.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio_rustls::TlsAcceptor;

use crate::support::{Authority, OriginServer, Proxy, intercepted, open, request};

/// Accepts any upgrade, and then sends back what it gets.
pub(crate) async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { break };
        head.push(byte);
    }
    let accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: x\r\n\r\n";
    stream.write_all(accepted.as_bytes()).await.unwrap();
    let (mut read, mut write) = split(stream);
    copy(&mut read, &mut write).await.ok();
    String::from_utf8(head).unwrap()
}

async fn check<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, target: &str, host: &str) {
    let sent = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: y\r\n\r\n"
    );
    let reply = request(stream, &sent).await.unwrap();
    assert_eq!(
        (reply.status, reply.header("upgrade")),
        (101, Some("websocket")),
        "{reply:?}"
    );
    assert_eq!(reply.header("sec-websocket-accept"), Some("x"));
    stream.write_all(b"GET / HTTP/1.1\nframes").await.unwrap();
    let mut echoed = [0; 21];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"GET / HTTP/1.1\nframes");
}

#[tokio::test]
async fn a_websocket_passes_through_a_plain_connection() {
    let server = OriginServer::listen(|stream, requests| async move {
        let head = echo(stream).await;
        requests.lock().push(head);
    })
    .await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    check(&mut client, &format!("http://{address}/"), &address).await;
    drop(client);
    assert_eq!(proxy.reason().await, "ok");
    crate::support::wait(|| !server.requests().is_empty()).await;
    let head = server.requests().remove(0);
    assert!(
        head.contains("connection: upgrade\r\n") && head.contains("sec-websocket-key: y\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn a_websocket_passes_through_an_intercepted_connection() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(authority.server("127.0.0.1"));
    let server = OriginServer::listen(move |stream, _| {
        let accepted = acceptor.accept(stream);
        async move { drop(echo(accepted.await.unwrap()).await) }
    })
    .await;
    let address = server.address();
    let (_proxy, mut stream) = intercepted(&authority, &address).await;
    check(&mut stream, "/", &address).await;
}

#[tokio::test]
async fn other_upgrades_are_refused_by_name() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    for (method, protocol) in [
        ("GET", "h2c"),
        ("POST", "websocket"),
        ("GET", "websocket, h2c"),
        ("GET", "TLS/1.0"),
    ] {
        let sent = format!(
            "{method} http://{address}/ HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\n\
             Upgrade: {protocol}\r\n\r\n"
        );
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!((reply.status, reply.header("connection")), (403, Some("close")));
        assert!(
            reply.text().contains(&format!(
                "`Upgrade: {}` is not supported",
                protocol.replace(' ', "?")
            )),
            "{}",
            reply.text()
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_server_that_switches_without_being_asked_is_a_bad_gateway() {
    let server = OriginServer::listen(|stream, _| async move { drop(echo(stream).await) }).await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    assert_eq!(reply.status, 502);
    assert_eq!(proxy.reason().await, "upstream");
}
