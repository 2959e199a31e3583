//! Requests that programs could read differently.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{OriginServer, Proxy, ProxyReply, open, request};

#[tokio::test]
async fn ambiguous_requests_are_malformed_and_reach_no_server() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let line = format!("POST http://{address}/ HTTP/1.1\r\n");
    let host = format!("Host: {address}\r\n");
    let inner = format!("GET http://{address}/smuggled HTTP/1.1\r\n{host}\r\n");
    for sent in [
        format!("{line}{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}Content-Length: 0\r\nContent-Length: 4\r\n\r\n{inner}"),
        format!("{line}{host}Content-Length: 4, 4\r\n\r\n{inner}"),
        format!("{line}{host}Content-Length: -1\r\n\r\n{inner}"),
        format!("{line}{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{line}{host}X-A: 1\n\r\n{inner}"),
        format!("{line}{host}X-A: 1\nX-B: 2\r\n\r\n{inner}"),
        format!("{line}{host}X-A: 1\rX-B: 2\r\n\r\n{inner}"),
        format!("{line}{host}X-A: 1\r\n folded\r\n\r\n{inner}"),
        format!("{line}{host}X-A: \0\r\n\r\n{inner}"),
        format!("{line}{host}X A: 1\r\n\r\n{inner}"),
        format!("{line}{host}\n{inner}"),
        format!("POST http://{address}/ HTTP/1.1\n{host}\r\n{inner}"),
        format!("POST http://{address}/\tHTTP/1.1\r\n{host}\r\n{inner}"),
        format!("POST http://{address}/ x HTTP/1.1\r\n{host}\r\n{inner}"),
        format!("\r\n{line}{host}\r\n{inner}"),
    ] {
        let mut client = open(&proxy);
        let reply = request(&mut client, &sent).await;
        assert_eq!(reply.map(|reply| reply.status), Some(400), "{sent:?}");
        // The connection ends, so that nothing after the request is read as another one.
        assert!(ProxyReply::read(&mut client).await.is_none(), "{sent:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_host_header_must_agree_with_the_url() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    for headers in [
        String::new(),
        "Host: denied.example\r\n".to_owned(),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: {address}\r\nHost: denied.example\r\n"),
        format!("Host: user@{address}\r\n"),
    ] {
        let sent = format!("GET http://{address}/ HTTP/1.1\r\n{headers}\r\n");
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!(reply.status, 400, "{headers:?}");
        assert!(reply.text().contains("`Host` header"), "{}", reply.text());
    }
    let sent = format!("GET http://user:password@{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn each_pipelined_request_is_checked() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "POST http://{address}/1 HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5\r\n\r\n\
         helloGET http://denied.example/2 HTTP/1.1\r\nHost: denied.example\r\n\r\n\
         GET http://{address}/3 HTTP/1.1\r\nHost: {address}\r\n\r\n\
         GET http://{address}/4 HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    client.write_all(sent.as_bytes()).await.unwrap();
    for status in [200, 403, 200, 400] {
        assert_eq!(ProxyReply::read(&mut client).await.unwrap().status, status);
    }
    assert!(ProxyReply::read(&mut client).await.is_none());
    let paths: Vec<_> = server
        .requests()
        .iter()
        .map(|text| text.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["POST /1", "GET /3"]);
}

#[tokio::test]
async fn a_chunked_body_is_forwarded_and_ends_the_connection() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "PUT http://{address}/1 HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-late\r\n\r\n\
         3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nx-late: 1\r\n\r\n\
         GET http://{address}/smuggled HTTP/1.1\r\nHost: {address}\r\n\r\n"
    );
    let reply = request(&mut client, &sent).await.unwrap();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(reply.text().ends_with("\n\nabcde"), "{}", reply.text());
    assert!(!reply.text().contains("x-late"), "{}", reply.text());
    assert!(ProxyReply::read(&mut client).await.is_none());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_tunnel_ends_the_connection() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example:443\r\n\r\n\
         GET http://{address}/smuggled HTTP/1.1\r\nHost: {address}\r\n\r\n"
    );
    assert_eq!(request(&mut client, &sent).await.unwrap().status, 403);
    assert!(ProxyReply::read(&mut client).await.is_none());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn headers_of_one_connection_are_not_forwarded() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let sent = format!(
        "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\nConnection: keep-alive, X-Named, Host\r\n\
         X-Named: 1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\
         TE: trailers\r\n\
         X-Kept: 1\r\n\r\n"
    );
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    let mut lines: Vec<_> = reply.text().lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [String::new(), format!("host: {address}"), "x-kept: 1".to_owned()]
    );
    for name in ["x-hop", "proxy-authenticate", "connection", "x-cellblock-egress"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let head = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n");
    for headers in [
        format!("X-A: {}\r\n", "a".repeat(64 << 10)),
        "X-A: a\r\n".repeat(200),
    ] {
        let mut client = open(&proxy);
        // The proxy answers before it has read everything.
        let _ = client.write_all(format!("{head}{headers}\r\n").as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer:?}");
    }
    assert_eq!(server.connections(), 0);
}
