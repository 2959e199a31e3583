//! Servers over HTTP that misbehave.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cellblock_agent::{ToolServer, ToolServerAddress, ToolServers};
use cellblock_mcp_client::{
    Address, ForeignServer, RequestedServerOptions, RequestedServers, ServerOptions, Transport,
};
use futures_util::stream::{StreamExt, iter, pending, repeat};
use serde_json::{Map, Value, json};

use crate::http::{listen, serve_forgetting};
use crate::support::{SHORT, at, good, names, options, refused, result};

/// A server that misbehaves in calls of `work`, and only there.
#[derive(Clone)]
struct WrongServer {
    how: &'static str,
    calls: Arc<AtomicUsize>,
}

fn json_of(id: &Value, result: &str) -> Response {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn streamed(kind: &'static str, first: String, chunk: &'static str, chunks: usize) -> Response {
    let chunks = iter([first]).map(Bytes::from).chain(iter(std::iter::repeat_n(
        Bytes::from_static(chunk.as_bytes()),
        chunks,
    )));
    let body = Body::from_stream(chunks.map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

const EVENTS: &str = "text/event-stream";
const MANY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

async fn answer(State(wrong): State<WrongServer>, headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let id = &message["id"];
    match message["method"].as_str().unwrap() {
        _ if wrong.how == "unauthorized" => StatusCode::UNAUTHORIZED.into_response(),
        "server/discover" => (StatusCode::NOT_FOUND, "nothing here").into_response(),
        "initialize" if wrong.how == "redirects" => (
            StatusCode::TEMPORARY_REDIRECT,
            [(header::LOCATION, "http://127.0.0.2:9/mcp")],
        )
            .into_response(),
        "initialize" => json_of(
            id,
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}"#,
        ),
        "tools/list" if wrong.how == "list" => pending::<()>()
            .next()
            .await
            .map_or(StatusCode::OK, |()| StatusCode::OK)
            .into_response(),
        "tools/list" => json_of(
            id,
            r#"{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}"#,
        ),
        "tools/call" if message["params"]["arguments"]["be"] == "good" => {
            let calls = wrong.calls.load(Ordering::SeqCst);
            json_of(
                id,
                &format!(
                    r#"{{"structuredContent":[{calls},{:?}]}}"#,
                    headers.get("x-key").map_or("", |it| it.to_str().unwrap())
                ),
            )
        }
        "tools/call" => {
            wrong.calls.fetch_add(1, Ordering::SeqCst);
            call(wrong.how, id).await
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn call(how: &str, id: &Value) -> Response {
    let begun = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":""#);
    match how {
        "large" => json_of(
            id,
            &format!(r#"{{"structuredContent":"{}"}}"#, "a".repeat(2 << 20)),
        ),
        "large chunks" => streamed("application/json", begun, MANY, 1 << 16),
        "large event" => streamed(EVENTS, format!("data: {begun}"), MANY, 1 << 16),
        "large lines" => streamed(
            EVENTS,
            "data: 1".to_owned(),
            "\ndata: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            1 << 16,
        ),
        "events" => {
            let told =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":5}}}}"#);
            streamed(
                EVENTS,
                format!(": hello\n\ndata: {told}\n\nevent: other\ndata: x\n\ndata: {answer}\n\n"),
                "",
                0,
            )
        }
        "asks" => {
            let asks = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            streamed(
                EVENTS,
                String::new(),
                Box::leak(format!("data: {asks}\n\n").into_boxed_str()),
                100,
            )
        }
        "no answer" => streamed(EVENTS, String::new(), ": nothing\n\n", 3),
        "no event" => streamed(
            EVENTS,
            "data: {\"jsonrpc\": \"2.0\", \"id\": \n\n".to_owned(),
            "",
            0,
        ),
        "breaks off" => {
            let failing = iter([Ok(Bytes::from(begun)), Err(std::io::Error::other("on purpose"))]);
            (
                [(header::CONTENT_TYPE, "application/json")],
                Body::from_stream(failing),
            )
                .into_response()
        }
        "limited" => {
            let told =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"slower"}}}}"#);
            let kind = (header::CONTENT_TYPE, "application/json");
            let headers = [kind, (header::RETRY_AFTER, "7")];
            (StatusCode::TOO_MANY_REQUESTS, headers, told).into_response()
        }
        "no JSON" => ([(header::CONTENT_TYPE, "application/json")], "{\"jsonrpc\"").into_response(),
        "other id" => json_of(&json!(77), "{}"),
        "HTML" => axum::response::Html("<p>Hello").into_response(),
        "status" => (StatusCode::SERVICE_UNAVAILABLE, "/srv/secret").into_response(),
        "hangs" => pending::<Response>().next().await.unwrap(),
        "hangs inside" => {
            let chunks = iter([Ok::<_, Infallible>(Bytes::from(begun))]).chain(pending());
            (
                [(header::CONTENT_TYPE, "application/json")],
                Body::from_stream(chunks),
            )
                .into_response()
        }
        "tells for ever" => {
            let told = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
            let chunks = repeat(Ok::<_, Infallible>(Bytes::from(format!("data: {told}\n\n"))));
            let slowly = chunks.then(|chunk| async move {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                chunk
            });
            ([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(slowly)).into_response()
        }
        other => panic!("{other}"),
    }
}

async fn wrong(how: &'static str) -> (WrongServer, String) {
    let wrong = WrongServer {
        how,
        calls: Arc::default(),
    };
    let refuse = get(|| async { StatusCode::METHOD_NOT_ALLOWED });
    let router = Router::new()
        .route("/mcp", post(answer).merge(refuse))
        .route(
            "/mcp/",
            post(|| async { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "/mcp")]) }),
        )
        .with_state(wrong.clone());
    (wrong, listen(router).await + "/mcp")
}

#[tokio::test]
async fn a_useless_response_is_reported_and_the_next_call_works() {
    let large = "returned more than the limit of 1 MiB; request less, such as fewer rows or columns";
    let message = "sent an invalid message of the Model Context Protocol: ";
    let asked = "sent its client 32 requests at once without reading a response; it was disconnected";
    let ended = "exited before it responded; it is started again for the next call";
    for (how, told) in [
        (
            "large",
            "returned 2097210 bytes, the limit is 1 MiB; request less, such as fewer rows or columns"
                .to_owned(),
        ),
        ("large chunks", large.to_owned()),
        ("large event", large.to_owned()),
        ("large lines", large.to_owned()),
        ("asks", asked.to_owned()),
        ("no answer", ended.to_owned()),
        ("no event", format!("{message}it is not valid JSON")),
        (
            "breaks off",
            "cannot be reached; continue without it, or try again later".to_owned(),
        ),
        ("no JSON", format!("{message}it is not valid JSON")),
        ("other id", format!("{message}it responds to another request")),
        ("HTML", format!("{message}its content type is `text/html`")),
        ("limited", "returned HTTP status 429; try again in 7 s".to_owned()),
        (
            "status",
            "returned HTTP status 503; try again later, or continue without it".to_owned(),
        ),
    ] {
        let (_, url) = wrong(how).await;
        let limits = ServerOptions {
            max_result: 1 << 20,
            ..options()
        };
        let server = at(&url, limits);
        assert_eq!(
            refused_told(&server).await,
            format!("the server `weather` {told}"),
            "{how}"
        );
        assert_eq!(good(&server).await, json!([1, ""]), "{how}");
    }
}

/// Returns why a call of `work` failed; a content type contains a `/`.
async fn refused_told(server: &ForeignServer) -> String {
    let told = server.call("work", Map::new()).await.unwrap_err().to_string();
    assert!(!told.contains("127.0.0.1") && !told.contains("secret"), "{told}");
    told
}

#[tokio::test]
async fn data_around_a_response_is_ignored() {
    let (_, url) = wrong("events").await;
    let server = at(&url, options());
    assert_eq!(result(&server, "work", json!({})).await, 5);
}

#[tokio::test]
async fn a_server_that_hangs_ends_at_the_limit() {
    for how in ["hangs", "hangs inside", "tells for ever"] {
        let (_, url) = wrong(how).await;
        let server = at(
            &url,
            ServerOptions {
                timeout: SHORT,
                ..options()
            },
        );
        assert_eq!(
            refused(&server).await,
            "the server `weather` did not answer the call of `work` within 0.4 s, the limit `timeout`; \
             request less, or try again later",
            "{how}"
        );
        assert_eq!(good(&server).await, json!([1, ""]), "{how}");
    }
    let (_, url) = wrong("list").await;
    let limits = ServerOptions {
        connect_timeout: std::time::Duration::from_secs(2),
        ..options()
    };
    let error = at(&url, limits).tools().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the server `weather` did not list its tools within 2 s, the limit `connect_timeout`; continue \
         without it, or try again later"
    );
}

#[tokio::test]
async fn a_failed_handshake_is_explained_and_not_repeated_immediately() {
    for (how, told) in [
        (
            "unauthorized",
            "the server `weather` returned HTTP status 401; its operator must configure other credentials",
        ),
        (
            "redirects",
            "the server `weather` returned HTTP status 307, a redirect; its operator must configure the \
             address that it leads to",
        ),
    ] {
        let (_, url) = wrong(how).await;
        let server = at(&url, options());
        assert_eq!(refused_told(&server).await, told);
        let again = refused_told(&server).await;
        assert!(
            again.starts_with(told) && again.contains(" s ago; it is tried again in "),
            "{again}"
        );
    }
    assert_eq!(
        refused_told(&at("http://127.0.0.1:1/mcp", options())).await,
        "the server `weather` cannot be reached; continue without it, or try again later"
    );
}

#[tokio::test]
async fn a_redirect_at_the_same_server_is_followed_as_far_as_its_pattern_goes() {
    let (_, url) = wrong("events").await;
    let server = at(&format!("{url}/"), options());
    assert_eq!(result(&server, "work", json!({})).await, 5);
    let servers = |pattern: &str| {
        let options = options();
        RequestedServers::new(&RequestedServerOptions {
            allowed_urls: vec![pattern.to_owned()],
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            ..RequestedServerOptions::default()
        })
    };
    let address = |url: &str| ToolServerAddress {
        label: "weather".to_owned(),
        url: url.to_owned(),
        headers: vec![("X-Key".to_owned(), "k".to_owned())],
    };
    let allowed = servers(&url).at(address(&url)).unwrap();
    let given = allowed.call("work", Map::new()).await.unwrap();
    assert_eq!(given, cellblock_agent::ToolReply::Result(json!(5)));
    assert!(servers(&format!("{url}x")).at(address(&url)).is_err());
}

#[tokio::test]
async fn headers_are_sent_with_every_request() {
    let (_, url) = wrong("events").await;
    let address = Address::new(&url, &[("X-Key".to_owned(), "k".to_owned())], false).unwrap();
    let server = ForeignServer::new("weather", Transport::Http(address), options());
    assert_eq!(good(&server).await, json!([0, "k"]));
}

#[tokio::test]
async fn a_forgotten_session_is_replaced() {
    let forgotten = Arc::new(AtomicUsize::new(0));
    let (_, url) = serve_forgetting(forgotten.clone()).await;
    let server = at(&url, options());
    assert_eq!(names(&server).await.len(), 4);
    forgotten.store(1, Ordering::SeqCst);
    assert_eq!(
        result(&server, "data", json!({"region": "a"})).await["asked"],
        json!({"region": "a"})
    );
    assert_eq!(forgotten.load(Ordering::SeqCst), 2);
}
