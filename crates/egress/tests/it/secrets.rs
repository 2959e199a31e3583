//! Secrets, which requests to their hosts carry and nothing else shows.

use std::io;
use std::sync::{Arc, Mutex};

use cellblock_egress::EgressOptions;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Answers, Authority, Proxy, Server, connect, handshake, open, request, trusting};

const SECRET: &str = "Bearer hunter2";

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn policy(servers: &[&Server]) -> serde_json::Value {
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
    let server = Server::start().await;
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
    let server = Server::tls(authority.server("a.example")).await;
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
    let server = Server::start().await;
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
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start().await;
    let down = Server::listen(|stream, _| async move { drop(stream) }).await;
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
            "{method} http://{host}/hidden-path?hidden-query HTTP/1.1\r\nHost: {host}\r\nX-Own: hidden-header\r\n\r\n"
        );
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        if reply.status != 200 {
            replies.extend([reply.head.clone(), reply.text()]);
        }
    }
    let records = proxy.records(5).await;
    let reasons: Vec<_> = records.iter().map(|record| record.reason).collect();
    assert_eq!(reasons, ["ok", "method", "upstream", "host", "port"]);
    let logged = log.text();
    assert_eq!(logged.matches("egress request").count(), 5, "{logged}");
    let first = format!(
        "session=test method=GET host=127.0.0.1 port={} bytes_up=",
        server.port
    );
    assert!(logged.contains(&first), "{logged}");
    assert!(logged.contains(r#"decision="denied" reason="host""#), "{logged}");
    let all = format!("{logged}{replies}{records:?}{:?}", proxy.proxy);
    for hidden in ["hunter2", "hidden-path", "hidden-query", "hidden-header"] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    // Only the allowed server got it.
    assert!(server.requests()[0].contains(SECRET));
    assert_eq!(server.requests().len(), 1);
}
