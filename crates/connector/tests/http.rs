//! Connectors over HTTP, against a server on this machine that counts, delays, redirects and repeats its key.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use cellblock_connector::{HttpConnector, HttpFunctions, RequestOptions, TypeOptions};
use cellblock_interpreter::connector::{
    Connector as _, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect,
};
use serde_json::{Map, Value, json};

const KEY: &str = "hunter2/and+more";

/// A server, which counts its requests.
struct HttpServer {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl HttpServer {
    async fn start() -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&requests));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, requests }
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

async fn answer(State(requests): State<Arc<AtomicUsize>>, request: Request) -> Response {
    let number = requests.fetch_add(1, Ordering::Relaxed);
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let json = |value: Value| value.to_string().into_response();
    let redirect = |to: &str| (StatusCode::FOUND, [(header::LOCATION, to.to_owned())]).into_response();
    let status =
        |status: StatusCode, after: &str| (status, [(header::RETRY_AFTER, after.to_owned())]).into_response();
    match parts.uri.path() {
        "/v1/observations" => json(json!({"observations": [
            {"date": "2026-01-01", "value": "1.5"},
            {"date": "2026-04-01", "value": "."},
        ]})),
        "/v1/pages" => {
            let page = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("page="))
                .unwrap_or("1");
            let page: u32 = page.parse().unwrap();
            let next = (page < 3).then(|| format!("/v1/pages?page={}", page + 1));
            json(
                json!({"rows": [{"page": page, "key": query.contains("api_key")}], "next": next,
                    "cursor": page + 1}),
            )
        }
        "/v1/loop" => json(json!({"rows": [], "next": "/v1/loop?x=1"})),
        "/v1/away" => json(json!({"rows": [], "next": "http://localhost:9/v1/pages"})),
        "/v1/above" => json(json!({"rows": [], "next": "/v2/pages"})),
        "/v1/slow" => {
            tokio::time::sleep(Duration::from_mins(1)).await;
            json(json!(1))
        }
        "/v1/busy" if number == 0 => status(StatusCode::TOO_MANY_REQUESTS, "1"),
        "/v1/always-busy" | "/v1/write-busy" => status(StatusCode::SERVICE_UNAVAILABLE, "0"),
        "/v1/long-busy" => status(StatusCode::TOO_MANY_REQUESTS, "3600"),
        "/v1/large" => json(json!("x".repeat(2 << 20))),
        "/v1/garbage" => "{]".into_response(),
        "/v1/moved" => redirect("/v1/observations"),
        "/v1/elsewhere" => redirect("http://localhost:9/"),
        "/v1/round" => redirect("/v1/round"),
        "/v1/denied" => (StatusCode::FORBIDDEN, format!("api_key {KEY} is not registered")).into_response(),
        _ => json(json!({
            "path": parts.uri.path(),
            "query": query,
            "method": parts.method.as_str(),
            "authorization": parts.headers.get("authorization").and_then(|it| it.to_str().ok()),
            "body": String::from_utf8_lossy(&body),
            "number": number,
        })),
    }
}

/// Options with these keys over the usual ones.
fn options(url: &str, functions: &Value, more: &Value) -> TypeOptions<HttpFunctions, RequestOptions> {
    let mut options = json!({
        "base_url": url,
        "allow_private": true,
        "secrets": {"api_key": {"env": "KEY"}},
        "functions": functions,
    });
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    TypeOptions::read(&options).unwrap()
}

fn connector(url: &str, functions: &Value, more: &Value) -> HttpConnector {
    let secrets = BTreeMap::from([("api_key".to_owned(), KEY.to_owned())]);
    HttpConnector::new("fred", &options(url, functions, more), &secrets).unwrap()
}

async fn fetch(
    connector: &HttpConnector,
    function: &str,
    arguments: Value,
) -> Result<FetchAnswer, ConnectorError> {
    let Value::Object(arguments) = arguments else {
        panic!("no arguments")
    };
    let until = Instant::now() + Duration::from_mins(1);
    connector.fetch(function, arguments, until).await
}

async fn value(connector: &HttpConnector, function: &str, arguments: Value) -> Value {
    match fetch(connector, function, arguments).await.unwrap() {
        FetchAnswer::Value(value) | FetchAnswer::LargeValue(value, _) => value,
        other => panic!("{other:?}"),
    }
}

async fn failure(connector: &HttpConnector, function: &str) -> ConnectorError {
    fetch(connector, function, json!({})).await.unwrap_err()
}

#[tokio::test]
async fn arguments_and_secrets_go_where_the_templates_say() {
    let server = HttpServer::start().await;
    let functions = json!({
        "get": {
            "get": "/items/{id}",
            "parameters": {
                "id": {"type": "string"}, "tag": {"type": "array"},
                "since": {"type": "string", "default": null},
                "page": {"type": "integer"},
            },
            "query": {"p": "{{ parameters.page }}"},
        },
        "search": {"post": "/search", "effect": "reads", "parameters": {"text": {"type": "string"}}},
    });
    let shared = json!({
        "query": {"api_key": "{{ secrets.api_key }}", "type": "json"},
        "headers": {"Authorization": "Bearer {{ secrets.api_key }}"},
    });
    let fred = connector(&server.url, &functions, &shared);
    let arguments = json!({"id": "a b&?#", "tag": ["x", "y&api_key=z"], "since": null, "page": 7});
    let sent = value(&fred, "get", arguments).await;
    assert_eq!(sent["path"], "/v1/items/a%20b%26%3F%23");
    assert_eq!(
        sent["query"],
        "api_key=hunter2%2Fand%2Bmore&type=json&p=7&tag=x&tag=y%26api_key%3Dz"
    );
    assert_eq!(sent["authorization"], format!("Bearer {KEY}"));
    let sent = value(&fred, "search", json!({"text": "{{ secrets.api_key }}"})).await;
    assert_eq!(sent["method"], "POST");
    assert_eq!(sent["body"], r#"{"text":"{{ secrets.api_key }}"}"#);
    let requests = server.count();
    for id in ["../x", "..", "a/b", ""] {
        let error = fetch(&fred, "get", json!({"id": id, "tag": [], "page": 1}))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ConnectorErrorKind::InvalidParameter, "{error}");
    }
    assert_eq!(server.count(), requests);
    let cards = fred.cards().await.unwrap();
    assert_eq!(cards[0].parameters["required"], json!(["id", "tag", "page"]));
    assert_eq!(
        cards[0].parameters["properties"]["since"]["type"],
        json!(["string", "null"])
    );
    assert_eq!(cards[1].effect, FetchEffect::Reads);
}

#[tokio::test]
async fn rows_with_types_are_a_table_and_others_a_list() {
    let server = HttpServer::start().await;
    let result = json!({"rows": "$.observations[*]", "columns": {"date": "date", "value": "float64"},
        "missing": ["."]});
    let functions = json!({
        "table": {"get": "/observations", "result": result},
        "list": {"get": "/observations", "result": {"rows": "$.observations[*].date"}},
        "mistyped": {"get": "/observations", "result": {"rows": "$.observations[*]",
            "columns": {"value": "float64"}}},
    });
    let fred = connector(&server.url, &functions, &json!({}));
    let answer = fetch(&fred, "table", json!({})).await.unwrap();
    assert!(matches!(answer, FetchAnswer::Arrow(_)), "{answer:?}");
    assert_eq!(
        value(&fred, "list", json!({})).await,
        json!(["2026-01-01", "2026-04-01"])
    );
    let error = failure(&fred, "mistyped").await;
    assert_eq!(error.kind(), ConnectorErrorKind::Parse);
    assert_eq!(
        error.to_string(),
        "fred.mistyped: row 2 has a value in `value` that is not of the type `float64`: \".\""
    );
}

#[tokio::test]
async fn pages_are_one_answer_and_never_leave_the_base_url() {
    let server = HttpServer::start().await;
    let rows = json!({"rows": "$.rows[*]"});
    let page = |path: &str, pages: Value| json!({"get": path, "result": rows, "pages": pages});
    let functions = json!({
        "all": page("/pages", json!({"next": "$.next"})),
        "cursor": page("/pages", json!({"next": "$.cursor", "parameter": "page", "most": 4})),
        "few": page("/pages", json!({"next": "$.next", "most": 2})),
        "endless": page("/loop", json!({"next": "$.next"})),
        "away": page("/away", json!({"next": "$.next"})),
        "above": page("/above", json!({"next": "$.next"})),
    });
    let shared = json!({"query": {"api_key": "{{ secrets.api_key }}"}});
    let fred = connector(&server.url, &functions, &shared);
    let all = value(&fred, "all", json!({})).await;
    assert_eq!(
        all,
        json!([{"page": 1, "key": true}, {"page": 2, "key": true}, {"page": 3, "key": true}])
    );
    assert_eq!(server.count(), 3);
    for (function, told) in [
        ("cursor", "more than 4 pages, the limit `pages.most`"),
        ("few", "more than 2 pages, the limit `pages.most`"),
        ("endless", "lead back to an earlier page"),
        ("away", "not below `base_url`"),
        ("above", "not below `base_url`"),
    ] {
        let error = failure(&fred, function).await;
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(error.kind(), ConnectorErrorKind::Parse);
    }
}

#[tokio::test]
async fn requests_that_read_are_repeated_within_the_time_and_others_never() {
    let server = HttpServer::start().await;
    let functions = json!({
        "busy": {"get": "/busy"},
        "always": {"get": "/always-busy"},
        "long": {"get": "/long-busy"},
        "write": {"post": "/write-busy", "effect": "writes"},
    });
    let fred = connector(&server.url, &functions, &json!({"allow_writes": true}));
    let started = Instant::now();
    assert_eq!(value(&fred, "busy", json!({})).await["number"], 1);
    assert!(started.elapsed() >= Duration::from_secs(1));
    for (function, requests, kind) in [
        ("always", 3, ConnectorErrorKind::Provider { status: Some(503) }),
        ("write", 1, ConnectorErrorKind::Provider { status: Some(503) }),
        (
            "long",
            1,
            ConnectorErrorKind::RateLimit {
                retry_after: Some(Duration::from_hours(1)),
            },
        ),
    ] {
        let before = server.count();
        let error = failure(&fred, function).await;
        assert_eq!(
            (server.count() - before, error.kind()),
            (requests, kind),
            "{error}"
        );
    }
    // The cell ends before the retry would be made.
    let until = Instant::now() + Duration::from_millis(500);
    let server = HttpServer::start().await;
    let fred = connector(&server.url, &functions, &json!({"allow_writes": true}));
    let error = fred.fetch("busy", Map::new(), until).await.unwrap_err();
    let retry_after = Some(Duration::from_secs(1));
    assert_eq!(error.kind(), ConnectorErrorKind::RateLimit { retry_after });
}

#[tokio::test]
async fn limits_of_time_size_and_rate_are_typed_errors() {
    let server = HttpServer::start().await;
    let functions = json!({
        "slow": {"get": "/slow"}, "large": {"get": "/large"}, "garbage": {"get": "/garbage"},
        "denied": {"get": "/denied"},
    });
    let hasty = connector(&server.url, &functions, &json!({"timeout": "300ms"}));
    let fred = connector(&server.url, &functions, &json!({"max_result": "1MiB"}));
    for (function, kind, told) in [
        (
            "slow",
            ConnectorErrorKind::Timeout,
            "within 0.3s, the limit `timeout`",
        ),
        (
            "large",
            ConnectorErrorKind::Provider { status: None },
            "larger than 1 MiB, the limit `max_result`",
        ),
        ("garbage", ConnectorErrorKind::Parse, "is not JSON"),
        (
            "denied",
            ConnectorErrorKind::Unauthorized,
            "403 Forbidden: api_key [redacted] is not registered",
        ),
    ] {
        let asked = if function == "slow" { &hasty } else { &fred };
        let error = failure(asked, function).await;
        assert!(error.to_string().contains(told), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert_eq!(error.kind(), kind);
    }
    let rated = connector(
        &server.url,
        &json!({"get": {"get": "/x"}}),
        &json!({"rate": "1/h", "timeout": "1s"}),
    );
    value(&rated, "get", json!({})).await;
    let before = server.count();
    let error = failure(&rated, "get").await;
    assert!(
        matches!(
            error.kind(),
            ConnectorErrorKind::RateLimit { retry_after: Some(_) }
        ),
        "{error}"
    );
    assert_eq!(server.count(), before);
}

#[tokio::test]
async fn redirects_stay_at_the_host() {
    let server = HttpServer::start().await;
    let functions = json!({
        "moved": {"get": "/moved"}, "elsewhere": {"get": "/elsewhere"}, "round": {"get": "/round"},
        "write": {"post": "/moved", "effect": "writes"},
    });
    let fred = connector(&server.url, &functions, &json!({"allow_writes": true}));
    assert_eq!(
        value(&fred, "moved", json!({})).await["observations"][0]["value"],
        "1.5"
    );
    for (function, told) in [
        (
            "elsewhere",
            "redirects to another address, `localhost`, which is not followed",
        ),
        ("round", "the redirect 302, which is not followed"),
        ("write", "the redirect 302, which is not followed"),
    ] {
        let error = failure(&fred, function).await;
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_after_their_name_is_resolved() {
    let server = HttpServer::start().await;
    let functions = json!({"get": {"get": "/x"}});
    let named = server.url.replace("127.0.0.1", "localhost");
    let fred = connector(&named, &functions, &json!({"allow_private": false}));
    let error = failure(&fred, "get").await;
    assert!(
        error.to_string().contains("`localhost` has the private address"),
        "{error}"
    );
    assert_eq!(server.count(), 0);
    let fred = connector(&named, &functions, &json!({}));
    assert_eq!(value(&fred, "get", json!({})).await["path"], "/v1/x");
}

#[tokio::test]
async fn a_server_that_is_down_is_named_with_its_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let fred = connector(
        &format!("http://127.0.0.1:{port}"),
        &json!({"get": {"get": "/x"}}),
        &json!({}),
    );
    let error = failure(&fred, "get").await.to_string();
    assert!(
        error.contains(&format!("`127.0.0.1:{port}` could not be connected to")),
        "{error}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn mistakes_in_options_name_their_keys() {
    let get = json!({"get": {"get": "/x"}});
    for (url, functions, more, told) in [
        (
            "http://169.254.169.254/",
            &get,
            json!({"allow_private": false}),
            "base_url: is a private address",
        ),
        (
            "http://2130706433/",
            &get,
            json!({"allow_private": false}),
            "base_url: is a private address",
        ),
        (
            "http://api.example.com/",
            &get,
            json!({}),
            "base_url: `http://` sends everything unencrypted",
        ),
        (
            "https://u:p@api.example.com/",
            &get,
            json!({}),
            "base_url: must not have a user",
        ),
        (
            "ftp://api.example.com/",
            &get,
            json!({}),
            "base_url: must be a URL",
        ),
        (
            "https://a.example/",
            &json!({"f": {"post": "/x"}}),
            json!({}),
            "functions.f: requests other than GET",
        ),
        (
            "https://a.example/",
            &json!({"f": {"get": "/x", "effect": "writes"}}),
            json!({}),
            "functions.f.effect: `writes` needs",
        ),
        (
            "https://a.example/",
            &json!({"f": {"get": "/x", "post": "/x"}}),
            json!({}),
            "functions.f.post: cannot be combined",
        ),
        (
            "https://a.example/",
            &json!({"f": {}}),
            json!({}),
            "functions.f: missing key `get`",
        ),
        (
            "https://a.example/",
            &json!({"f": {"get": "/{id}"}}),
            json!({}),
            "functions.f.get: inserts `id`",
        ),
        (
            "https://a.example/",
            &get,
            json!({"query": {"k": "{{ secrets.none }}"}}),
            "query.k: inserts `none`",
        ),
        (
            "https://a.example/",
            &get,
            json!({"query": {"k": "{{ x }}"}}),
            "query.k: must have",
        ),
        (
            "https://a.example/",
            &get,
            json!({"headers": {"host": "x"}}),
            "functions.get.headers.host: is set automatically",
        ),
        (
            "https://a.example/",
            &json!({"f": {"get": "/x", "pages": {"next": "next"}}}),
            json!({}),
            "functions.f.pages: needs `result`",
        ),
        (
            "https://a.example/",
            &json!({"f": {"get": "/x", "result": {"rows": "rows"}}}),
            json!({}),
            "functions.f.result.rows: `rows` is not a JSONPath",
        ),
    ] {
        let secrets = BTreeMap::from([("api_key".to_owned(), KEY.to_owned())]);
        let mistakes = HttpConnector::new("fred", &options(url, functions, &more), &secrets).unwrap_err();
        let mistakes: Vec<_> = mistakes
            .iter()
            .map(|it| format!("{}: {}", it.path.join("."), it.message))
            .collect();
        assert!(
            mistakes.iter().any(|mistake| mistake.starts_with(told)),
            "{told}: {mistakes:#?}"
        );
    }
}
