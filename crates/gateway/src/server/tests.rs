//! Connections and answers, with routes that do little.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::uri::Scheme;
use axum::routing::{get, post};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::Acceptor;
use super::tls::Tls;
use super::*;
use crate::options::TlsOptions;
use crate::retry;
use crate::state::connections::LiveConnections;

/// More than both ends keep of what is not read.
const LARGE: usize = 32 << 20;
/// Maximum size of a body that is read.
const MAX_BODY: usize = 64;

/// Sends to a WebSocket as long as there is one.
async fn flood(mut socket: WebSocket) {
    while socket.send(Message::binary(vec![0; 1 << 16])).await.is_ok() {}
}

/// Returns a router with the common parts of all answers, around routes that work, panic and read.
fn router() -> Router {
    let panics = async || -> String { panic!("the secret of the route") };
    let reads = async |body: String| body;
    let works = async |request: axum::extract::Request| match request.extensions().get::<Scheme>() {
        Some(_) => "encrypted and fine",
        None => "fine",
    };
    let refuses = async || {
        retry::after(7);
        axum::http::StatusCode::TOO_MANY_REQUESTS
    };
    Router::new()
        .route("/works", get(works))
        .route("/panics", get(panics))
        .route("/refuses", get(refuses))
        .route("/reads", post(reads).layer(DefaultBodyLimit::max(MAX_BODY)))
        .route("/large", get(async || vec![0_u8; LARGE]))
        .route(
            "/socket",
            get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(flood)),
        )
        .layer(CatchPanicLayer::custom(answers::panicked))
        .layer(from_fn_with_state(MAX_BODY, answers::complete))
        .layer(from_fn(|request, next| {
            observe::observe(Duration::from_millis(200), request, next)
        }))
}

fn acceptor(options: &HttpServerOptions, tls: Option<Tls>) -> Acceptor {
    Acceptor {
        router: router(),
        max_connections: options.max_connections,
        header_timeout: options.header_timeout,
        write_timeout: options.write_timeout,
        live: LiveConnections::default(),
        tls: tls.map(Arc::new),
        draining: CancellationToken::new(),
        stopping: CancellationToken::new(),
        closing: CancellationToken::new(),
        connections: TaskTracker::new(),
    }
}

async fn serve(acceptor: &Acceptor) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor.clone();
    tokio::spawn(async move { acceptor.run(&listener).await });
    address
}

/// Sends bytes, and reads what comes back until the server has said all.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A server that closes without saying so has said all, too.
    let _cut = stream.read_to_string(&mut answer).await;
    answer
}

async fn ask(address: SocketAddr, text: &str) -> String {
    exchange(TcpStream::connect(address).await.unwrap(), text).await
}

const WORKS: &str = "GET /works HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_route_that_panics_is_an_error_in_the_form_of_the_api_and_keeps_its_secret() {
    let address = serve(&acceptor(&HttpServerOptions::default(), None)).await;
    let answer = ask(address, &WORKS.replace("works", "panics")).await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("\"code\":\"server_error\""), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
    assert!(ask(address, WORKS).await.ends_with("fine"));
}

#[tokio::test]
async fn a_client_that_is_refused_while_it_sends_can_send_on_and_ask_again() {
    let address = serve(&acceptor(&HttpServerOptions::default(), None)).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /works HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 405");
    // More than fits between the two.
    let chunk = [b"10000\r\n", &vec![b'x'; 0x10000][..], b"\r\n"].concat();
    for _ in 0..160 {
        stream.write_all(&chunk).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let rest = exchange(stream, WORKS).await;
    assert!(rest.contains("HTTP/1.1 200 OK"), "{rest}");
    assert!(rest.ends_with("fine"), "{rest}");
}

#[tokio::test]
async fn a_refusal_for_now_says_when_to_come_again() {
    let address = serve(&acceptor(&HttpServerOptions::default(), None)).await;
    let answer = ask(address, &WORKS.replace("works", "refuses")).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("retry-after: 7\r\n"), "{answer}");
    assert!(answer.contains("\"code\":\"rate_limit_exceeded\""), "{answer}");
    assert!(!ask(address, WORKS).await.contains("retry-after"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_told_the_limit_and_the_setting() {
    let address = serve(&acceptor(&HttpServerOptions::default(), None)).await;
    let body = "x".repeat(MAX_BODY + 1);
    let head = "POST /reads HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length";
    let answer = ask(address, &format!("{head}: {}\r\n\r\n{body}", body.len())).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"code\":\"request_too_large\""), "{answer}");
    assert!(answer.contains("more than 64 bytes, the limit; "), "{answer}");
    assert!(answer.contains("`http.max_body`"), "{answer}");
}

#[tokio::test]
async fn a_head_and_a_body_that_do_not_come_hold_no_connection() {
    let options = HttpServerOptions {
        header_timeout: Duration::from_millis(200),
        ..HttpServerOptions::default()
    };
    let acceptor = acceptor(&options, None);
    let address = serve(&acceptor).await;
    let answer = ask(address, "GET /works HTTP/1.1\r\nHost: loc").await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
        "{answer}"
    );
    let silent = ask(address, "").await;
    assert_eq!(silent, "");
    let half = "POST /reads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf";
    let answer = ask(address, half).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    acceptor.stopping.cancel();
    acceptor.connections.close();
    acceptor.connections.wait().await;
}

#[tokio::test]
async fn connections_beyond_the_most_wait_for_their_turn() {
    let options = HttpServerOptions {
        max_connections: 1,
        ..HttpServerOptions::default()
    };
    let acceptor = acceptor(&options, None);
    let address = serve(&acceptor).await;
    let first = TcpStream::connect(address).await.unwrap();
    while acceptor.connections.is_empty() {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(async move { ask(address, WORKS).await });
    // The second one is connected, as the system does that, and not taken.
    assert!(exchange(first, WORKS).await.ends_with("fine"));
    assert!(second.await.unwrap().ends_with("fine"));
}

/// Sends a request, and reads nothing.
async fn send(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Sends a request from another address of this machine.
async fn ask_from(other: &str, address: SocketAddr, request: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{other}:0").parse().unwrap()).unwrap();
    exchange(socket.connect(address).await.unwrap(), request).await
}

/// Longer than anything takes on a busy machine, and shorter than the timeouts of the server.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection() {
    const SOCKET: &str = "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n\
                          Upgrade: websocket\r\n\
                          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for request in [&WORKS.replace("works", "large"), SOCKET] {
        let options = HttpServerOptions {
            max_connections: 1,
            write_timeout: Duration::from_millis(200),
            ..HttpServerOptions::default()
        };
        let address = serve(&acceptor(&options, None)).await;
        let unread = send(address, request).await;
        // There is one place, which is free again when the connection has ended.
        let answer = tokio::time::timeout(PATIENCE, ask_from("127.0.0.2", address, WORKS)).await;
        assert!(answer.unwrap().ends_with("fine"), "{request}");
        drop(unread);
    }
}

#[tokio::test]
async fn one_address_cannot_hold_all_connections() {
    let options = HttpServerOptions {
        max_connections: 4,
        ..HttpServerOptions::default()
    };
    let address = serve(&acceptor(&options, None)).await;
    let large = WORKS.replace("works", "large");
    let mut unread = Vec::new();
    for _ in 0..3 {
        let mut stream = send(address, &large).await;
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        unread.push(stream);
    }
    // It is closed before it sends anything.
    let refused = tokio::time::timeout(PATIENCE, ask(address, "")).await;
    assert_eq!(refused.unwrap(), "");
    let other = tokio::time::timeout(PATIENCE, ask_from("127.0.0.2", address, WORKS)).await;
    assert!(other.unwrap().ends_with("fine"));
}

#[tokio::test]
async fn a_connection_without_a_request_makes_room_for_another() {
    let options = HttpServerOptions {
        max_connections: 1,
        ..HttpServerOptions::default()
    };
    let address = serve(&acceptor(&options, None)).await;
    let keeps = WORKS.replace("Connection: close\r\n", "");
    let mut kept = send(address, &keeps).await;
    let mut answer = [0; 15];
    kept.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    for from in ["127.0.0.1", "127.0.0.2"] {
        let next = tokio::time::timeout(PATIENCE, ask_from(from, address, WORKS)).await;
        assert!(next.unwrap().ends_with("fine"), "{from}");
    }
    let mut rest = String::new();
    kept.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("fine"), "{rest}");
}

#[tokio::test]
async fn a_connection_that_waits_ends_when_the_server_stops() {
    let acceptor = acceptor(&HttpServerOptions::default(), None);
    let address = serve(&acceptor).await;
    let mut kept = TcpStream::connect(address).await.unwrap();
    let asks = WORKS.replace("Connection: close\r\n", "");
    kept.write_all(asks.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    kept.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    acceptor.stopping.cancel();
    acceptor.connections.close();
    acceptor.connections.wait().await;
    let mut rest = String::new();
    kept.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("fine"), "{rest}");
}

#[tokio::test]
async fn pages_may_read_answers_where_their_origin_is_listed() {
    let ask = async |listed: &[&str]| {
        let origins: Vec<_> = listed.iter().map(|&it| it.to_owned()).collect();
        let mut acceptor = acceptor(&HttpServerOptions::default(), None);
        acceptor.router = router().layer(hosts::cors(&origins, &[]));
        let preflight = "OPTIONS /works HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n\
                         Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n";
        ask(serve(&acceptor).await, preflight).await
    };
    let allowed = "access-control-allow-origin: https://app.example\r\n";
    assert!(ask(&["https://app.example"]).await.contains(allowed));
    assert!(
        !ask(&["https://other.example"])
            .await
            .contains("access-control-allow-origin")
    );
    assert!(!ask(&[]).await.contains("access-control-allow-origin"));
}

/// A self-signed certificate for `localhost` with its key, valid from 2020 to 2120.
const FIRST: &str = include_str!("tests/first.pem");
const SECOND: &str = include_str!("tests/second.pem");

/// Writes a certificate and its key to two files.
fn certificate(dir: &std::path::Path, pem: &str) -> TlsOptions {
    let options = TlsOptions {
        certificates: dir.join("cert.pem"),
        key: dir.join("key.pem"),
    };
    std::fs::write(&options.certificates, pem).unwrap();
    std::fs::write(&options.key, pem).unwrap();
    options
}

async fn encrypted(address: SocketAddr, trusted: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(exchange(stream, WORKS).await)
}

#[tokio::test]
async fn what_is_encrypted_is_read_by_those_who_trust_the_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let options = certificate(dir.path(), FIRST);
    let tls = Tls::load(&options).unwrap();
    let address = serve(&acceptor(&HttpServerOptions::default(), Some(tls))).await;
    assert!(
        encrypted(address, FIRST)
            .await
            .unwrap()
            .ends_with("encrypted and fine")
    );
    assert!(encrypted(address, SECOND).await.is_err());
    // Plain requests are none.
    assert!(!ask(address, WORKS).await.contains("fine"));
}

#[tokio::test]
async fn a_certificate_that_was_replaced_is_used_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let options = certificate(dir.path(), FIRST);
    let tls = Tls::load(&options).unwrap();
    let acceptor = acceptor(&HttpServerOptions::default(), Some(tls));
    let address = serve(&acceptor).await;
    let tls = acceptor.tls.as_ref().unwrap();
    std::fs::write(&options.key, "broken").unwrap();
    tls.look_now();
    assert!(encrypted(address, FIRST).await.unwrap().ends_with("fine"));
    certificate(dir.path(), SECOND);
    tls.look_now();
    assert!(encrypted(address, SECOND).await.unwrap().ends_with("fine"));
    assert!(encrypted(address, FIRST).await.is_err());
}
