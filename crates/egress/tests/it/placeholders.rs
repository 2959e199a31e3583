//! Placeholders, which become secrets in the headers of requests to their host and nowhere else.

use cellblock_egress::{DomainSecret, EgressOptions, EgressPolicy, EgressSecret};
use cellblock_testkit::LogRecords;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::client::TlsStream;

use crate::support::{
    Answers, Authority, OriginServer, Proxy, ProxyReply, connect, handshake, open, request, trusting,
};

const SECRET: &str = "hunter2-hunter2";

/// A server, and a proxy that allows it under three names and has a secret for all but `b.example`.
struct Setup {
    authority: Authority,
    server: OriginServer,
    proxy: Proxy,
    key: String,
}

impl Setup {
    async fn new() -> Self {
        let authority = Authority::new();
        let server = OriginServer::tls(authority.server("a.example")).await;
        Self::of(authority, server)
    }

    fn of(authority: Authority, server: OriginServer) -> Self {
        let names = ["a.example", "b.example", "127.0.0.1"];
        let rules = names.map(|name| format!("{name}:{}", server.port));
        let secret = |host: &str| DomainSecret {
            host: host.parse().unwrap(),
            name: "KEY".to_owned(),
            value: EgressSecret::new(SECRET),
        };
        let policy = EgressPolicy {
            domain_secrets: vec![secret("a.example"), secret("127.0.0.1")],
            ..EgressPolicy::from_rules(rules).unwrap()
        };
        let options = EgressOptions {
            resolver: Answers::loopback(),
            roots: vec![authority.root()],
            ..EgressOptions::default()
        };
        let proxy = Proxy::of(policy, options);
        let key = proxy.proxy.variables()["KEY"].clone();
        Self {
            authority,
            server,
            proxy,
            key,
        }
    }

    fn host(&self, name: &str) -> String {
        format!("{name}:{}", self.server.port)
    }

    /// Opens a connection to `a.example`, whose TLS ends at the proxy.
    async fn inside(&self) -> TlsStream<DuplexStream> {
        let (tunnel, _) = connect(&self.proxy, &self.host("a.example")).await;
        let root = trusting(&self.proxy.proxy.ca_pem().unwrap());
        handshake(tunnel, "a.example", root).await.unwrap()
    }
}

#[tokio::test]
async fn placeholders_are_replaced_in_all_headers_of_each_request_and_not_in_path_and_body() {
    let setup = Setup::new().await;
    let (host, key) = (setup.host("a.example"), &setup.key);
    let mut stream = setup.inside().await;
    for _ in 0..2 {
        let head = format!(
            "POST /{key} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nX-Key: {key}\r\n\
             X-Key: a {key}, {key}\r\nX-Other: mine\r\nContent-Length: {}\r\n\r\n",
            key.len()
        );
        // The head arrives in pieces, the first of which ends in the middle of a placeholder.
        let middle = head.find("Bearer ").unwrap() + 20;
        stream.write_all(&head.as_bytes()[..middle]).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        let rest = format!("{}{key}", &head[middle..]);
        let reply = request(&mut stream, &rest).await.unwrap();
        assert_eq!(
            reply.text(),
            format!(
                "POST /{key}\nhost: {host}\nauthorization: Bearer {SECRET}\nx-key: {SECRET}\n\
                 x-key: a {SECRET}, {SECRET}\nx-other: mine\ncontent-length: {}\n\n{key}",
                key.len()
            )
        );
    }
    assert_eq!(setup.server.connections(), 1, "it was kept alive");
    let old = format!("GET / HTTP/1.0\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n");
    let reply = request(&mut stream, &old).await.unwrap();
    assert!(
        reply.text().contains(&format!("x-key: {SECRET}\n")),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn a_header_that_the_host_repeats_has_the_placeholder_again() {
    let setup = Setup::new().await;
    let (host, key) = (setup.host("a.example"), &setup.key);
    let mut stream = setup.inside().await;
    let sent = format!("GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: https://{key}\r\n\r\n");
    let reply = request(&mut stream, &sent).await.unwrap();
    assert!(setup.server.requests()[0].contains(&format!("origin: https://{SECRET}\n")));
    let repeated = reply.header("access-control-allow-origin");
    assert_eq!(repeated, Some(&*format!("https://{key}")), "{}", reply.head);
}

#[tokio::test]
async fn another_host_gets_the_placeholder_itself() {
    let setup = Setup::new().await;
    let (host, key) = (setup.host("b.example"), &setup.key);
    let (tunnel, _) = connect(&setup.proxy, &host).await;
    let mut stream = handshake(tunnel, "a.example", setup.authority.root())
        .await
        .unwrap();
    let sent = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n");
    let reply = request(&mut stream, &sent).await.unwrap();
    assert_eq!(reply.text(), format!("GET /\nhost: {host}\nx-key: {key}\n\n"));
    // A `Host` header that names the other host does not lead to its secret.
    let mut stream = setup.inside().await;
    let reply = request(&mut stream, &sent).await.unwrap();
    assert_eq!(reply.status, 400);
    assert!(setup.server.requests().iter().all(|it| !it.contains(SECRET)));
}

#[tokio::test]
async fn a_placeholder_is_not_replaced_unencrypted_except_on_this_machine() {
    let setup = Setup::of(Authority::new(), OriginServer::start().await);
    let send = async |name: &str| -> ProxyReply {
        let (host, key) = (setup.host(name), &setup.key);
        let sent = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n");
        request(&mut open(&setup.proxy), &sent).await.unwrap()
    };
    let refused = send("a.example").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("use `https://`"), "{}", refused.text());
    assert_eq!(setup.server.connections(), 0);
    let local = send("127.0.0.1").await;
    assert!(
        local.text().contains(&format!("x-key: {SECRET}\n")),
        "{}",
        local.text()
    );
    let other = send("b.example").await;
    assert!(other.text().contains(&format!("x-key: {}\n", setup.key)));
}

#[tokio::test]
async fn an_upgrade_carries_the_secret_and_its_frames_do_not() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(authority.server("a.example"));
    let server = OriginServer::listen(move |stream, requests| {
        let accepted = acceptor.accept(stream);
        async move {
            let head = crate::websocket::echo(accepted.await.unwrap()).await;
            requests.lock().push(head);
        }
    })
    .await;
    let setup = Setup::of(authority, server);
    let (host, key) = (setup.host("a.example"), &setup.key);
    let mut stream = setup.inside().await;
    let sent = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Key: {key}\r\n\r\n"
    );
    assert_eq!(request(&mut stream, &sent).await.unwrap().status, 101);
    stream.write_all(key.as_bytes()).await.unwrap();
    let mut echoed = vec![0; key.len()];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, key.as_bytes());
    drop(stream);
    crate::support::wait(|| !setup.server.requests().is_empty()).await;
    let head = setup.server.requests().remove(0);
    assert!(head.contains(&format!("x-key: {SECRET}\r\n")), "{head}");
}

#[tokio::test]
async fn a_branch_has_the_same_placeholders_and_certificates_and_counts_for_itself() {
    let setup = Setup::of(Authority::new(), OriginServer::start().await);
    let branch = setup.proxy.proxy.branch("branch", None);
    assert_eq!(branch.variables(), setup.proxy.proxy.variables());
    assert_eq!(branch.ca_pem(), setup.proxy.proxy.ca_pem());
    let (mut client, stream) = duplex(64 << 10);
    let serving = branch.clone();
    tokio::spawn(async move { serving.serve(stream).await });
    let (host, key) = (setup.host("127.0.0.1"), &setup.key);
    let sent = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n");
    let reply = request(&mut client, &sent).await.unwrap();
    assert!(
        reply.text().contains(&format!("x-key: {SECRET}\n")),
        "{}",
        reply.text()
    );
    let requests = (branch.usage().requests, setup.proxy.proxy.usage().requests);
    assert_eq!(requests, (1, 0));
}

#[tokio::test]
async fn no_log_record_or_refusal_contains_the_secret() {
    let log = LogRecords::take();
    let setup = Setup::new().await;
    let (host, key) = (setup.host("a.example"), &setup.key);
    let mut stream = setup.inside().await;
    let sent = |method: &str| format!("{method} / HTTP/1.1\r\nHost: {host}\r\nX-Key: {key}\r\n\r\n");
    // Its response would repeat the headers.
    let refused = request(&mut stream, &sent("TRACE")).await.unwrap();
    assert_eq!(refused.status, 403);
    let answered = request(&mut stream, &sent("GET")).await.unwrap();
    // What the host itself repeats in a body is not removed.
    assert!(answered.text().contains(SECRET));
    let records = setup.proxy.records(2).await;
    let shown = format!(
        "{}{}{records:?}{:?}",
        log.text(),
        refused.text(),
        setup.proxy.proxy
    );
    assert!(!shown.contains(SECRET), "{shown}");
}
