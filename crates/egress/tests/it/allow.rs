//! Hosts, ports and methods of plain requests.

use std::sync::atomic::Ordering::SeqCst;

use cellblock_egress::{EgressDecision, EgressOptions, EgressPolicy, EgressRestriction};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Answers, OriginServer, Proxy, open, request};

#[tokio::test]
async fn a_request_to_an_allowed_server_is_forwarded_and_recorded() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "POST http://{address}/a/b?secret=query HTTP/1.1\r\nHost: {address}\r\nX-Own: 1\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
    let reply = request(&mut client, &sent).await.unwrap();
    assert_eq!(reply.status, 200);
    let expected = format!("POST /a/b?secret=query\nx-own: 1\ncontent-length: 5\nhost: {address}\n\nhello");
    let mut lines = [reply.text(), expected].map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    for lines in &mut lines {
        lines.sort();
    }
    assert_eq!(lines[0], lines[1]);
    let record = proxy.records(1).await.remove(0);
    assert_eq!(
        (&*record.session, &*record.method, &*record.host, record.port),
        ("test", "POST", "127.0.0.1", server.port)
    );
    assert_eq!((record.decision, record.reason), (EgressDecision::Allowed, "ok"));
    assert!(
        record.bytes_up > 60 && record.bytes_down > reply.body.len() as u64,
        "{record:?}"
    );
    let usage = proxy.proxy.usage();
    assert_eq!(
        (usage.requests, usage.bytes_up, usage.bytes_down),
        (1, record.bytes_up, record.bytes_down)
    );
}

#[tokio::test]
async fn a_denied_host_is_answered_with_the_allow_list_and_the_fix() {
    let server = OriginServer::start().await;
    let proxy = Proxy::allowing(&["a.example", "*.b.example"]);
    let address = server.address();
    let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    assert_eq!(reply.status, 403);
    assert_eq!(reply.header("x-cellblock-egress"), Some("denied"));
    assert_eq!(
        reply.text(),
        format!(
            "egress: host `127.0.0.1` is not on the allow-list; allowed: a.example, *.b.example; to allow \
             it, the operator adds the rule `{address}` (`--allow {address}`)\n"
        )
    );
    assert!(
        reply
            .head
            .starts_with("HTTP/1.1 403 egress: host `127.0.0.1` is not on the allow-list\r\n")
    );
    let record = proxy.records(1).await.remove(0);
    assert_eq!((record.decision, record.reason), (EgressDecision::Denied, "host"));
    assert_eq!(
        (record.bytes_up, record.bytes_down, proxy.proxy.usage().denied),
        (0, 0, 1)
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_restriction_of_the_session_takes_allowed_targets_away() {
    let server = OriginServer::start().await;
    let address = server.address();
    let named = format!("a.example:{}", server.port);
    let denying = |deny: &str, except: &[&str]| {
        let mut policy = EgressPolicy::from_rules([&address, &named]).unwrap();
        policy.restriction = EgressRestriction {
            deny: vec![deny.parse().unwrap()],
            except: except.iter().map(|it| it.parse().unwrap()).collect(),
        };
        let resolver = Answers::loopback();
        let options = EgressOptions {
            resolver: resolver.clone(),
            ..EgressOptions::default()
        };
        (Proxy::of(policy, options), resolver)
    };
    let ask = async |proxy: &Proxy, target: &str| {
        let sent = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
        request(&mut open(proxy), &sent).await.unwrap().status
    };
    // The address is denied as a literal, and as that of a name.
    let (proxy, _) = denying("127.0.0.0/8", &[]);
    assert_eq!(
        (ask(&proxy, &address).await, ask(&proxy, &named).await),
        (403, 403)
    );
    assert_eq!(proxy.records(2).await[1].reason, "restricted");
    let sent = format!("CONNECT {named} HTTP/1.1\r\nHost: {named}\r\n\r\n");
    assert_eq!(request(&mut open(&proxy), &sent).await.unwrap().status, 403);
    let (proxy, _) = denying("127.0.0.0/8", &["a.example"]);
    assert_eq!(
        (ask(&proxy, &address).await, ask(&proxy, &named).await),
        (403, 200)
    );
    // A name of which nothing can be reached is not resolved.
    let (proxy, resolver) = denying("0.0.0.0/0", &["127.0.0.1"]);
    assert_eq!(
        (ask(&proxy, &address).await, ask(&proxy, &named).await),
        (200, 403)
    );
    assert_eq!(resolver.asked.load(SeqCst), 0);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn ports_and_methods_of_a_rule_are_enforced() {
    let server = OriginServer::start().await;
    let address = server.address();
    let policy = json!({ "allow": [{ "host": address, "methods": ["GET", "HEAD"] }] });
    let proxy = Proxy::new(policy, EgressOptions::default());
    let mut client = open(&proxy);
    for (method, status) in [
        ("GET", 200),
        ("POST", 403),
        ("get", 403),
        ("DELETE", 403),
        ("GET", 200),
    ] {
        let sent = format!("{method} http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let reply = request(&mut client, &sent).await.unwrap();
        assert_eq!(reply.status, status, "{method}: {}", reply.text());
    }
    let reply = request(
        &mut client,
        "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
    )
    .await
    .unwrap();
    assert_eq!(reply.status, 403);
    assert!(
        reply.text().contains("port 1 of host `127.0.0.1`"),
        "{}",
        reply.text()
    );
    let reasons: Vec<_> = proxy
        .records(6)
        .await
        .iter()
        .map(|record| record.reason)
        .collect();
    assert_eq!(reasons, ["ok", "method", "method", "method", "ok", "port"]);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_wildcard_allows_names_below_the_domain_only() {
    let server = OriginServer::start().await;
    let port = server.port;
    let rules = json!({ "allow": [format!("*.example.com:{port}"), server.address()] });
    let options = EgressOptions {
        resolver: Answers::loopback(),
        ..EgressOptions::default()
    };
    let proxy = Proxy::new(rules, options);
    for (host, status) in [
        ("a.example.com", 200),
        ("A.B.EXAMPLE.COM.", 200),
        ("example.com", 403),
        ("aexample.com", 403),
        ("a.example.com.evil.example", 403),
    ] {
        let sent = format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!(reply.status, status, "{host}: {}", reply.text());
    }
    assert!(server.requests()[1].contains(&format!("host: a.b.example.com:{port}\n")));
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let sent = format!("GET http://{address}/redirect HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    assert_eq!(
        (reply.status, reply.header("location")),
        (302, Some("http://denied.example/"))
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn requests_that_are_not_for_a_proxy_are_malformed() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    for (target, expected) in [
        ("/".to_owned(), "absolute URL"),
        ("*".to_owned(), "absolute URL"),
        (format!("https://{address}/"), "needs CONNECT"),
        (format!("ftp://{address}/"), "other schemes"),
    ] {
        let sent = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!(reply.status, 400, "{target}");
        assert!(reply.text().contains(expected), "{target}: {}", reply.text());
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_server_that_is_down_is_a_bad_gateway() {
    let address = OriginServer::start().await.address();
    let proxy = Proxy::allowing(&[&address]);
    let connected = async {
        // The port is free once the dropped server's task has ended.
        loop {
            let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
            let reply = request(&mut open(&proxy), &sent).await.unwrap();
            if reply.status != 200 {
                return reply;
            }
        }
    };
    let reply = connected.await;
    assert_eq!(
        (reply.status, reply.header("x-cellblock-egress")),
        (502, Some("failed"))
    );
    assert_eq!(
        reply.text(),
        format!("egress: cannot connect to `{address}`: connection refused\n")
    );
}

#[tokio::test]
async fn a_response_to_head_has_a_length_and_no_body() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    let sent = format!(
        "HEAD http://{address}/bytes/5000 HTTP/1.1\r\nHost: {address}\r\n\r\n\
         GET http://{address}/next HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(sent.as_bytes()).await.unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).await.unwrap();
    let (head, rest) = answers.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 5000"), "{head}");
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{rest}");
    assert!(
        rest.ends_with(&format!("\r\n\r\nGET /next\nhost: {address}\n\n")),
        "{rest}"
    );
}
