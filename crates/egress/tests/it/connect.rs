//! Tunnels.

use cellblock_egress::{EgressDecision, EgressOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Authority, OriginServer, Proxy, connect, handshake, open, request};

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_records_them() {
    let server = OriginServer::listen(|mut stream, _| async move {
        let mut request = [0; 4];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(b"answer").await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        stream.write_all(&rest).await.unwrap();
    })
    .await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let (mut tunnel, reply) = connect(&proxy, &address).await;
    assert_eq!(reply.status, 200);
    tunnel.write_all(b"ping").await.unwrap();
    let mut answer = [0; 6];
    tunnel.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"answer");
    // One side can end before the other.
    tunnel.write_all(b"rest").await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut rest = Vec::new();
    tunnel.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"rest");
    let record = proxy.records(1).await.remove(0);
    assert_eq!(
        (&*record.method, record.bytes_up, record.bytes_down),
        ("CONNECT", 8, 10)
    );
    assert_eq!(
        (record.decision, record.reason, record.port),
        (EgressDecision::Allowed, "ok", server.port)
    );
}

#[tokio::test]
async fn bytes_that_follow_connect_at_once_reach_the_server() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\nGET /early HTTP/1.1\r\nHost: other.example\n\
         X: y\r\n\r\n"
    );
    assert_eq!(request(&mut client, &sent).await.unwrap().status, 200);
    let reply = crate::support::ProxyReply::read(&mut client).await.unwrap();
    assert!(
        reply
            .text()
            .starts_with("GET /early\nhost: other.example\nx: y\n"),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn tls_in_a_tunnel_ends_at_the_server() {
    let authority = Authority::new();
    let server = OriginServer::tls(authority.server("127.0.0.1")).await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    assert_eq!(proxy.proxy.ca_pem(), None);
    let (tunnel, _) = connect(&proxy, &address).await;
    let mut stream = handshake(tunnel, "127.0.0.1", authority.root()).await.unwrap();
    let reply = request(&mut stream, "GET /tls HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(reply.text().starts_with("GET /tls\n"));
}

#[tokio::test]
async fn tunnels_need_a_rule_for_the_host_and_the_port() {
    let server = OriginServer::start().await;
    let (address, port) = (server.address(), server.port);
    let proxy = Proxy::allowing(&[&format!("a.example:{port}"), "127.0.0.1"]);
    for (target, status, expected) in [
        (address.as_str(), 403, "port"),
        ("b.example:443", 403, "is not on the allow-list"),
        ("a.example:22", 403, "port 22"),
        ("127.0.0.1", 403, "valid port"),
        ("a.example:0", 403, "valid port"),
    ] {
        let (_, reply) = connect(&proxy, target).await;
        assert_eq!(reply.status, status, "{target}");
        assert!(reply.text().contains(expected), "{target}: {}", reply.text());
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_body_or_another_host_with_connect_is_malformed() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    for headers in [
        "Host: denied.example:443\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let sent = format!("CONNECT {address} HTTP/1.1\r\n{headers}\r\n");
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!(reply.status, 400, "{headers}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_tunnel_of_http_1_0_without_a_host_header_works() {
    let server = OriginServer::start().await;
    let address = server.address();
    let policy = json!({ "allow": [address] });
    let proxy = Proxy::new(policy, EgressOptions::default());
    let mut client = open(&proxy);
    let reply = request(&mut client, &format!("CONNECT {address} HTTP/1.0\r\n\r\n"))
        .await
        .unwrap();
    assert_eq!(reply.status, 200);
    let reply = request(&mut client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(reply.status, 200);
}
