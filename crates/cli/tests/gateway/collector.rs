//! Spans at a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;

use rustix::process::Signal;

use crate::server::{PATIENCE, ServerHome};

/// Receives what was sent to a collector: the request's line and headers in lower case, and its body.
fn receive(listener: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        head += &line.to_lowercase();
        line.clear();
    }
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\
                  Connection: close\r\n\r\n";
    reader.get_mut().write_all(answer.as_bytes()).unwrap();
    (head, body)
}

#[test]
fn spans_of_requests_reach_a_collector_before_the_server_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    // It ends with the test's process.
    thread::spawn(move || {
        loop {
            if sender.send(receive(&listener)).is_err() {
                return;
            }
        }
    });
    let place = ServerHome::new();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=secret-of-the-collector",
        ),
    ];
    let mut server = place.serve_with(&[], &environment);
    let asked = server.get("/healthz", &[("X-Request-Id", "seen-by-the-collector")]);
    assert_eq!(asked.status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());

    let mut found = false;
    while let Ok((head, body)) = received.recv_timeout(if found {
        std::time::Duration::ZERO
    } else {
        PATIENCE
    }) {
        assert!(head.starts_with("post /v1/traces "), "{head}");
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        assert!(head.contains("authorization: secret-of-the-collector"), "{head}");
        let holds = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
        if holds("seen-by-the-collector") {
            assert!(holds("/healthz") && holds("service.name") && holds("cellblock"));
            found = true;
        }
    }
    assert!(found);
    assert!(!server.log().contains("secret-of-the-collector"));
}
