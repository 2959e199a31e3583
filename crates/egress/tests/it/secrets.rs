//! Secrets, which requests to their hosts carry and nothing else shows.

use cellblock_egress::EgressOptions;
use cellblock_testkit::LogRecords;
use serde_json::json;

use crate::support::{Answers, Authority, OriginServer, Proxy, connect, handshake, open, request, trusting};

const SECRET: &str = "Bearer hunter2";

fn policy(servers: &[&OriginServer]) -> serde_json::Value {
    let mut allow: Vec<_> = servers.iter().map(|server| server.address()).collect();
    allow.extend(["a", "b"].map(|name| format!("{name}.example:{}", servers[0].port)));
    json!({
        "allow": allow,
        "secrets": [
            { "host": "127.0.0.1", "header": "Authorization", "value": SECRET },
            { "host": "a.example", "header": "authorization", "value": SECRET },
        ],
    })
}

#[tokio::test]
async fn a_secret_replaces_the_header_that_code_set() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::new(policy(&[&server]), EgressOptions::default());
    for own in [
        "",
        "authorization: mine\r\nAUTHORIZATION: mine\r\n",
        "Connection: authorization\r\n",
    ] {
        let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n{own}\r\n");
        assert_eq!(request(&mut open(&proxy), &sent).await.unwrap().status, 200);
        let got = server.requests().pop().unwrap();
        let headers: Vec<_> = got
            .lines()
            .filter(|line| line.starts_with("authorization"))
            .collect();
        assert_eq!(headers, [format!("authorization: {SECRET}")], "{own:?}");
    }
}

#[tokio::test]
async fn a_secret_is_added_inside_intercepted_connections_of_its_host_only() {
    let authority = Authority::new();
    let server = OriginServer::tls(authority.server("a.example")).await;
    let options = EgressOptions {
        resolver: Answers::loopback(),
        roots: vec![authority.root()],
        ..EgressOptions::default()
    };
    let proxy = Proxy::new(policy(&[&server]), options);
    let host = format!("a.example:{}", server.port);
    let (tunnel, _) = connect(&proxy, &host).await;
    let mut stream = handshake(tunnel, "a.example", trusting(&proxy.proxy.ca_pem().unwrap()))
        .await
        .unwrap();
    let reply = request(&mut stream, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        .await
        .unwrap();
    assert!(
        reply.text().contains(&format!("authorization: {SECRET}\n")),
        "{}",
        reply.text()
    );
    // The other name is a tunnel, which ends at the server and not at the proxy.
    let host = format!("b.example:{}", server.port);
    let (tunnel, _) = connect(&proxy, &host).await;
    let mut stream = handshake(tunnel, "a.example", authority.root()).await.unwrap();
    let reply = request(&mut stream, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        .await
        .unwrap();
    assert_eq!(reply.text(), format!("GET /\nhost: {host}\n\n"));
}

#[tokio::test]
async fn a_secret_is_not_sent_unencrypted_to_another_machine() {
    let server = OriginServer::start().await;
    let host = format!("a.example:{}", server.port);
    let options = EgressOptions {
        resolver: Answers::loopback(),
        ..EgressOptions::default()
    };
    let proxy = Proxy::new(policy(&[&server]), options);
    let sent = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let reply = request(&mut open(&proxy), &sent).await.unwrap();
    assert_eq!(reply.status, 403);
    assert!(reply.text().contains("use `https://`"), "{}", reply.text());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_log_record_or_refusal_contains_a_secret_a_path_or_a_header() {
    let log = LogRecords::take();
    let server = OriginServer::start().await;
    let down = OriginServer::listen(|stream, _| async move { drop(stream) }).await;
    let proxy = Proxy::new(policy(&[&server, &down]), EgressOptions::default());
    let mut replies = String::new();
    for (method, host) in [
        ("GET", server.address()),
        ("TRACE", server.address()),
        ("GET", down.address()),
        ("GET", "denied.example".to_owned()),
        ("GET", format!("127.0.0.1:{}", 1)),
    ] {
        let sent = format!(
            "{method} http://{host}/hidden-path?hidden-query HTTP/1.1\r\nHost: {host}\r\n\
             X-Own: hidden-header\r\n\r\n"
        );
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        if reply.status != 200 {
            replies.extend([reply.head.clone(), reply.text()]);
        }
    }
    let records = proxy.records(5).await;
    let reasons: Vec<_> = records.iter().map(|record| record.reason).collect();
    assert_eq!(reasons, ["ok", "method", "upstream", "host", "port"]);
    let mut logged = log.all();
    logged.retain(|record| record["fields"]["message"] == "egress request");
    assert_eq!(logged.len(), 5, "{}", log.text());
    let (first, denied) = (&logged[0]["fields"], &logged[3]["fields"]);
    assert_eq!(
        (
            &first["session"],
            &first["method"],
            &first["host"],
            &first["port"]
        ),
        (
            &json!("test"),
            &json!("GET"),
            &json!("127.0.0.1"),
            &json!(server.port)
        )
    );
    assert_eq!(
        (&denied["decision"], &denied["reason"]),
        (&json!("denied"), &json!("host"))
    );
    let all = format!("{}{replies}{records:?}{:?}", log.text(), proxy.proxy);
    for hidden in ["hunter2", "hidden-path", "hidden-query", "hidden-header"] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    // Only the allowed server got it.
    assert!(server.requests()[0].contains(SECRET));
    assert_eq!(server.requests().len(), 1);
}
