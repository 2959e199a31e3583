//! The memory usage of a result of 200 MB. In a separate process, so that nothing else is counted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::path::Path;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use cellblock_agent::ToolServer;
use cellblock_mcp_client::{Address, ForeignServer, ServerOptions, StdioProgram, Transport};
use futures_util::stream::{StreamExt, iter};
use serde_json::{Map, Value, json};

/// Size of the result, and of the memory that it may use: the limit is 32 MiB, and a buffer may
/// double when it grows.
const RESULT: usize = 200 << 20;
const MOST_GROWTH: u64 = 96 << 20;

/// Peak memory in bytes since the last reset.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes << 10
}

fn reset() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    peak()
}

/// Answers a call with 200 MiB, in a stream of events or as one body.
async fn answer(Query(how): Query<Vec<(String, String)>>, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "t", "version": "1"}})
        }
        "tools/call" => {
            let events = how[0].1 == "events";
            let begun = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":""#);
            let (kind, begun, end) = if events {
                ("text/event-stream", format!("data: {begun}"), "\"}}\n\n")
            } else {
                ("application/json", begun, "\"}}")
            };
            let piece = Bytes::from(vec![b'a'; 64 << 10]);
            let pieces = std::iter::repeat_n(piece, RESULT / (64 << 10));
            let stream = iter([Bytes::from(begun)])
                .chain(iter(pieces))
                .chain(iter([Bytes::from(end)]));
            let body = Body::from_stream(stream.map(Ok::<_, Infallible>));
            return ([(header::CONTENT_TYPE, kind)], body).into_response();
        }
        "server/discover" => return StatusCode::NOT_FOUND.into_response(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

fn stdio() -> Transport {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/servers/stdio.py");
    Transport::Stdio(StdioProgram {
        command: vec![
            "python3".to_owned(),
            script.display().to_string(),
            "large".to_owned(),
        ],
        environment: Vec::new(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_200_mb_takes_little_more_than_its_limit() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let http = |how: &str| Transport::Http(Address::new(&format!("{url}?how={how}"), &[], false).unwrap());
    for (how, transport) in [
        ("stdio", stdio()),
        ("one body", http("body")),
        ("events", http("events")),
    ] {
        let server = ForeignServer::new("large", transport, ServerOptions::default());
        let before = reset();
        let error = server.call("work", Map::new()).await.unwrap_err();
        let grown = peak().saturating_sub(before);
        assert_eq!(
            error.to_string(),
            "the server `large` returned more than the limit of 32 MiB; request less, such as fewer rows \
             or columns",
            "{how}"
        );
        assert!(grown < MOST_GROWTH, "{how}: {grown} bytes");
    }
}
