//! Refused requests, and headers that every answer carries.

use crate::http;
use crate::server::{ServerHome, until};

#[test]
fn other_names_and_other_pages_are_rejected() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    let port = server.address.port();
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{host}:{port}");
        assert_eq!(server.get("/healthz", &[("Host", &host)]).status, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1"] {
        let answer = server.get("/healthz", &[("Host", host)]);
        assert_eq!(answer.status, 403, "{host}");
        assert_eq!(answer.code(), "host_not_allowed");
    }
    let own = format!("http://127.0.0.1:{port}");
    assert_eq!(server.get("/healthz", &[("Origin", &own)]).status, 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = server.get("/healthz", &[("Origin", origin)]);
        assert_eq!(answer.status, 403, "{origin}");
        assert_eq!(answer.code(), "origin_not_allowed");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    server.security("host_not_allowed");
}

#[test]
fn a_browser_is_sent_to_the_console_and_a_client_of_the_api_gets_an_error() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    let browser = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let page = server.get("/", &[browser]);
    assert_eq!((page.status, page.header("location")), (307, Some("/console")));
    let page = server.get("/console", &[browser]);
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    for headers in [&[][..], &[("Accept", "application/json")], &[("Accept", "*/*")]] {
        let answer = server.get("/", headers);
        assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
    }
}

#[test]
fn every_answer_has_an_id_and_errors_have_the_form_of_the_api() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    let answer = server.get("/healthz", &[]);
    let id = answer.header("x-request-id").unwrap();
    assert!(id.starts_with("req_"), "{id}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = server.get("/nowhere", &[("X-Request-Id", "mine-1")]);
    assert_eq!(answer.header("x-request-id"), Some("mine-1"));
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
    until(|| server.log().contains("mine-1").then_some(()));

    let answer = server.get("/v1/responses/a/b/c", &[("X-Request-Id", "not sane")]);
    assert_ne!(answer.header("x-request-id"), Some("not sane"));
    let answer = http::send(server.address, "DELETE /healthz", &[], "").answer();
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (405, "method_not_allowed")
    );
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    let large = "x".repeat((16 << 20) + 1);
    let answer = server.post("/v1/responses", &[], &large);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "request_too_large")
    );

    // The page of the reference lists what is told, and more than this is told.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(
        server.post("/v1/responses", &[], &http::code("1", false)).status,
        200
    );
    let told = server.get("/metrics", &[]).body;
    let names: Vec<_> = told
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for name in &names {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name} is not in docs/reference/metrics.md"
        );
    }
    for name in [
        "cellblock_build",
        "cellblock_execution_seconds",
        "cellblock_executions_running",
        "cellblock_executions_total",
        "cellblock_http_request_seconds",
        "cellblock_http_requests_in_flight",
        "cellblock_http_requests_total",
        "cellblock_pool_ready",
        "cellblock_sandbox_seconds",
        "cellblock_sandboxes",
        "cellblock_sandboxes_awaited",
        "cellblock_steps_total",
        "cellblock_turns_total",
    ] {
        assert!(names.contains(&name), "{name} is not told:\n{told}");
    }
    let executions = "cellblock_executions_total{toolset=\"interpreter\",outcome=\"completed\"}";
    assert_eq!(server.metric(executions, &[]), 1, "{told}");
    let requests = "cellblock_http_requests_total{method=\"POST\",route=\"/v1/responses\",status=\"200\"}";
    assert_eq!(server.metric(requests, &[]), 1, "{told}");
}
