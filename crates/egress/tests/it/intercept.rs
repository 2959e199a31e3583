//! Connections whose TLS ends at the proxy.

use cellblock_egress::{EgressDecision, EgressOptions};
use serde_json::json;
use tokio::io::DuplexStream;
use tokio_rustls::client::TlsStream;

use crate::support::{
    Answers, Authority, OriginServer, Proxy, ProxyReply, connect, handshake, open, request, trusting,
};

const NAME: &str = "api.example.com";

/// A TLS server that is `api.example.com`, and a proxy that allows GET there.
struct Setup {
    server: OriginServer,
    proxy: Proxy,
    host: String,
}

impl Setup {
    async fn new() -> Self {
        let authority = Authority::new();
        let server = OriginServer::tls(authority.server(NAME)).await;
        let host = format!("{NAME}:{}", server.port);
        let proxy = proxy(&server, &host, &[&authority]);
        Self { server, proxy, host }
    }

    async fn open(&self) -> TlsStream<DuplexStream> {
        let (tunnel, reply) = connect(&self.proxy, &self.host).await;
        assert_eq!(reply.status, 200);
        let root = trusting(&self.proxy.proxy.ca_pem().unwrap());
        handshake(tunnel, NAME, root).await.unwrap()
    }

    async fn get(&self, bytes: &str) -> ProxyReply {
        request(&mut self.open().await, bytes).await.unwrap()
    }
}

fn proxy(server: &OriginServer, host: &str, trusted: &[&Authority]) -> Proxy {
    let policy = json!({
        "allow": [
            { "host": host, "methods": ["GET"] },
            { "host": server.address(), "methods": ["GET"] },
        ],
    });
    let options = EgressOptions {
        resolver: Answers::loopback(),
        roots: trusted.iter().map(|authority| authority.root()).collect(),
        ..EgressOptions::default()
    };
    Proxy::new(policy, options)
}

#[tokio::test]
async fn requests_inside_are_forwarded_and_recorded_one_by_one() {
    let setup = Setup::new().await;
    let mut stream = setup.open().await;
    for path in ["/1", "/2"] {
        let sent = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", setup.host);
        let reply = request(&mut stream, &sent).await.unwrap();
        assert_eq!(reply.status, 200);
        assert_eq!(reply.text(), format!("GET {path}\nhost: {}\n\n", setup.host));
    }
    let records = setup.proxy.records(2).await;
    for record in &records {
        assert_eq!(
            (&*record.method, &*record.host, record.port),
            ("GET", NAME, setup.server.port)
        );
        assert_eq!((record.decision, record.reason), (EgressDecision::Allowed, "ok"));
        assert!(record.bytes_up > 0 && record.bytes_down > 0);
    }
    // The handshake belongs to the first request; everything is counted once.
    assert!(records[0].bytes_down > records[1].bytes_down + 300, "{records:?}");
    let usage = setup.proxy.proxy.usage();
    assert_eq!(records[0].bytes_down + records[1].bytes_down, usage.bytes_down);
    assert_eq!(records[0].bytes_up + records[1].bytes_up, usage.bytes_up);
    assert_eq!(setup.server.connections(), 1);
}

#[tokio::test]
async fn methods_and_hosts_inside_are_checked() {
    let setup = Setup::new().await;
    let host = &setup.host;
    for (sent, status) in [
        (
            format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"),
            403,
        ),
        ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n"), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n"),
            400,
        ),
        (
            format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            400,
        ),
        (
            format!("GET https://other.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            400,
        ),
        (format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            400,
        ),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: y\n\r\n"), 400),
    ] {
        let reply = setup.get(&sent).await;
        assert_eq!(reply.status, status, "{sent:?}: {}", reply.text());
        assert_eq!(reply.header("x-cellblock-egress"), Some("denied"));
    }
    assert_eq!(setup.server.connections(), 0);
}

#[tokio::test]
async fn a_server_name_that_differs_from_connect_is_refused() {
    let setup = Setup::new().await;
    let (tunnel, _) = connect(&setup.proxy, &setup.host).await;
    let root = trusting(&setup.proxy.proxy.ca_pem().unwrap());
    let error = handshake(tunnel, "other.example.com", root).await.unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    assert_eq!(setup.proxy.reason().await, "sni");
    assert_eq!(setup.server.connections(), 0);
}

#[tokio::test]
async fn the_certificate_is_for_the_host_of_connect_only() {
    let setup = Setup::new().await;
    // Without a server name, because an address is not one.
    let (tunnel, _) = connect(&setup.proxy, &setup.host).await;
    let root = trusting(&setup.proxy.proxy.ca_pem().unwrap());
    let error = handshake(tunnel, "127.0.0.1", root.clone()).await.unwrap_err();
    assert!(
        error.to_string().contains("certificate not valid for name"),
        "{error}"
    );
    let (tunnel, _) = connect(&setup.proxy, &setup.server.address()).await;
    assert!(handshake(tunnel, "127.0.0.1", root).await.is_ok());
}

#[tokio::test]
async fn the_authority_of_one_proxy_is_not_trusted_with_another() {
    let setup = Setup::new().await;
    let other = Setup::new().await;
    let (tunnel, _) = connect(&setup.proxy, &setup.host).await;
    let root = trusting(&other.proxy.proxy.ca_pem().unwrap());
    let error = handshake(tunnel, NAME, root).await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    assert_eq!(setup.proxy.reason().await, "client_tls");
}

#[tokio::test]
async fn a_server_with_an_invalid_certificate_is_a_bad_gateway() {
    let (authority, unknown) = (Authority::new(), Authority::new());
    for (config, expected) in [
        (unknown.server(NAME), "invalid peer certificate"),
        (authority.server("other.example.com"), "not valid for name"),
    ] {
        let server = OriginServer::tls(config).await;
        let host = format!("{NAME}:{}", server.port);
        let proxy = proxy(&server, &host, &[&authority]);
        let setup = Setup { server, proxy, host };
        let reply = setup
            .get(&format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", setup.host))
            .await;
        assert_eq!(reply.status, 502);
        assert!(reply.text().contains(expected), "{}", reply.text());
        assert_eq!(setup.proxy.reason().await, "tls");
        assert_eq!(setup.server.requests().len(), 0);
    }
}

#[tokio::test]
async fn an_intercepted_tunnel_carries_only_tls() {
    let setup = Setup::new().await;
    let (mut tunnel, _) = connect(&setup.proxy, &setup.host).await;
    let reply = request(
        &mut tunnel,
        &format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", setup.host),
    )
    .await;
    assert!(reply.is_none(), "{reply:?}");
    assert_eq!(setup.proxy.reason().await, "client_tls");
    assert_eq!(setup.server.connections(), 0);
}

#[tokio::test]
async fn methods_are_checked_for_unencrypted_requests_too() {
    let setup = Setup::new().await;
    let host = &setup.host;
    let sent = format!("POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(request(&mut open(&setup.proxy), &sent).await.unwrap().status, 403);
}
