//! `/ports` and `/proxy/{port}/{path}`: programs of a sandbox that listen on a port.
//!
//! Their pages are written by code that nobody trusts, and come from the address of Open WebUI. The answer makes browsers show them in an origin
//! of their own, so that they can do nothing that any other page could not do.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN, REFERER, REFERRER_POLICY,
    SET_COOKIE, STRICT_TRANSPORT_SECURITY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use axum::response::Response;
use cellblock_interpreter::egress::remove_hop_by_hop;
use serde_json::{Value, json};

use super::chat::{Caller, OpenTerminal};
use super::problem::Problem;
use super::transfer::ALONE;
use crate::forward::ask;

/// Headers of requests that are not for programs.
const OURS: [HeaderName; 6] = [
    AUTHORIZATION,
    COOKIE,
    REFERER,
    HeaderName::from_static("x-user-id"),
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("x-terminal-context-id"),
];

/// Headers of answers that would change how browsers treat the site they come by.
const ABOUT_US: [HeaderName; 7] = [
    SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
    REFERRER_POLICY,
    WWW_AUTHENTICATE,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("service-worker-allowed"),
];

/// `GET /ports`.
pub(super) async fn list(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let ports = match terminal.existing(&caller) {
        Some(held) => held.session.ports().list().await?,
        None => Vec::new(),
    };
    // Which process it is, the sandbox does not say.
    let port = |port| json!({"port": port, "address": "127.0.0.1", "pid": null, "process": null});
    Ok(Json(
        json!({"ports": ports.into_iter().map(port).collect::<Vec<_>>()}),
    ))
}

/// `/proxy/{port}/{path}`.
pub(super) async fn proxy(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path((port, _)): Path<(u16, String)>,
    request: Request,
) -> Result<Response, Problem> {
    forward(&terminal, &caller, port, request).await
}

/// `/proxy/{port}/`.
pub(super) async fn proxy_root(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(port): Path<u16>,
    request: Request,
) -> Result<Response, Problem> {
    forward(&terminal, &caller, port, request).await
}

async fn forward(
    terminal: &OpenTerminal,
    caller: &Caller,
    port: u16,
    mut request: Request,
) -> Result<Response, Problem> {
    let closed = || Problem::missing(format!("nothing listens on port {port} of this sandbox"));
    let held = terminal.existing(caller).ok_or_else(closed)?;
    let prefix = format!("/proxy/{port}");
    // As it was sent, and not decoded.
    let path = request.uri().path().strip_prefix(&prefix).unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path }.to_owned();
    let query = request
        .uri()
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let there = format!("{path}{query}").parse();
    *request.uri_mut() = there.map_err(|_| Problem::invalid(format!("`{path}` is not a path")))?;
    *request.version_mut() = Version::HTTP_11;
    to_program(request.headers_mut(), port);
    let stream = held.session.ports().connect(port).await?;
    let answered = ask(&terminal.host, stream, request).await;
    let mut response = answered.map_err(|error| {
        let detail = format!("the program on port {port} broke off: {error}");
        Problem::new(StatusCode::BAD_GATEWAY, detail)
    })?;
    to_client(response.headers_mut(), port, &path);
    Ok(response.map(Body::new))
}

/// Turns a client's headers into those of the request to the program.
fn to_program(headers: &mut HeaderMap, port: u16) {
    remove_hop_by_hop(headers);
    for name in OURS {
        headers.remove(name);
    }
    let own = format!("127.0.0.1:{port}");
    if let Ok(host) = HeaderValue::from_str(&own) {
        headers.insert(HOST, host);
    }
    // Programs refuse pages of others, and its own pages have no origin that it could know.
    if headers.contains_key(ORIGIN)
        && let Ok(origin) = HeaderValue::from_str(&format!("http://{own}"))
    {
        headers.insert(ORIGIN, origin);
    }
}

/// Turns a program's headers into those of the answer to the client.
fn to_client(headers: &mut HeaderMap, port: u16, path: &str) {
    remove_hop_by_hop(headers);
    for name in ABOUT_US {
        headers.remove(name);
    }
    let cors = headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control-"));
    for name in cors.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    // Beside what the program sets itself: browsers apply all policies.
    headers.append(CONTENT_SECURITY_POLICY, ALONE);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let moved = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    if let Some(location) = moved.and_then(|location| relative(location, port, path)) {
        match HeaderValue::from_str(&location) {
            Ok(location) => headers.insert(LOCATION, location),
            Err(_) => headers.remove(LOCATION),
        };
    }
}

/// Returns an address of the program as seen from one of its paths: where its root is for the browser, only Open WebUI knows.
fn relative(location: &str, port: u16, path: &str) -> Option<String> {
    let own = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}"));
    let rest = own.iter().find_map(|own| location.strip_prefix(own.as_str()));
    let there = rest.unwrap_or(location);
    if there.starts_with("//") || !(there.starts_with('/') || rest == Some("")) {
        return None;
    }
    let depth = path.matches('/').count().saturating_sub(1);
    let up = if depth == 0 {
        "./".to_owned()
    } else {
        "../".repeat(depth)
    };
    Some(up + there.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_program_is_seen_from_where_the_browser_is() {
        let seen = |location, path| relative(location, 8000, path);
        assert_eq!(seen("/login?a", "/").unwrap(), "./login?a");
        assert_eq!(seen("/login", "/a/b").unwrap(), "../login");
        assert_eq!(seen("http://localhost:8000/x", "/a/b/c").unwrap(), "../../x");
        assert_eq!(seen("http://127.0.0.1:8000", "/a").unwrap(), "./");
        for other in [
            "next",
            "//evil.example/",
            "https://evil.example/",
            "http://localhost:80801/x",
        ] {
            assert_eq!(seen(other, "/a/b"), None, "{other}");
        }
    }

    #[test]
    fn a_program_learns_nothing_of_the_caller_and_cannot_speak_for_the_site() {
        let map = |headers: &[(&'static str, &'static str)]| -> HeaderMap {
            headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect()
        };
        let mut request = map(&[
            ("authorization", "Bearer ck_1"),
            ("x-user-id", "u"),
            ("x-session-id", "c"),
            ("cookie", "a=1"),
            ("connection", "x-secret"),
            ("x-secret", "1"),
            ("accept", "text/html"),
        ]);
        to_program(&mut request, 8000);
        assert_eq!(
            request,
            map(&[("host", "127.0.0.1:8000"), ("accept", "text/html")])
        );
        let mut answer = map(&[
            ("set-cookie", "a=1"),
            ("access-control-allow-origin", "*"),
            ("content-type", "text/html"),
        ]);
        to_client(&mut answer, 8000, "/");
        assert!(!ALONE.to_str().unwrap().contains("same-origin"));
        let expected = [("content-type", "text/html"), ("referrer-policy", "no-referrer")];
        answer.remove(CONTENT_SECURITY_POLICY);
        assert_eq!(answer, map(&expected));
    }
}
