//! One request to a program in a sandbox, and its answer.

use std::fmt::Display;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderMap};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use axum::response::Response;
use cellblock_agent::wire::ErrorKind;
use cellblock_interpreter::session::ports::SandboxStream;
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;

use super::headers;
use crate::problem::Problem;
use crate::relay::{self, PassedOn};
use crate::state::Gateway;
use crate::state::sessions::HostedSession;

/// How a request came, and where it goes.
#[derive(Debug)]
pub(super) struct Way {
    /// Path of the program's root at the gateway, without a `/` at its end.
    pub(super) prefix: String,
    pub(super) port: u16,
    pub(super) entry: Entry,
}

/// What lets a request in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The caller's key.
    Key,
    /// A link, at the gateway's own address.
    Link,
    /// A link, at a host that serves nothing else.
    Host,
}

impl Way {
    /// Returns the path at the program.
    fn there(&self, uri: &Uri) -> Result<Uri, Problem> {
        let path = uri.path().strip_prefix(&self.prefix).unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let there = format!("{path}{query}").parse();
        there.map_err(|_| Problem::invalid("path", format!("`{path}` is not a path")))
    }

    /// Returns the path that clients have for the program's root, without a `/` at its end.
    pub(super) fn shown(&self) -> &str {
        if self.entry == Entry::Host {
            ""
        } else {
            &self.prefix
        }
    }

    /// Returns where at the gateway the program's own address is, if it is its own.
    pub(super) fn here(&self, address: &str) -> Option<String> {
        let own = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{}", self.port));
        let rest = own.iter().find_map(|own| address.strip_prefix(own));
        let path = rest.unwrap_or(address);
        let is_rooted = path.starts_with('/') && !path.starts_with("//");
        match (is_rooted, rest) {
            (true, _) => Some(format!("{}{path}", self.shown())),
            (false, Some("")) => Some(format!("{}/", self.shown())),
            _ => None,
        }
    }
}

/// Sends a request to the program, and returns its answer.
pub(super) async fn forward(
    gateway: &Gateway,
    held: &HostedSession,
    way: &Way,
    mut request: Request,
) -> Result<Response, Problem> {
    if request.uri().path() == way.prefix {
        // Relative addresses of its page would miss the program.
        return Ok(moved(way));
    }
    if way.entry == Entry::Link && is_preflight(&request) {
        return Ok(preflight(request.headers()));
    }
    let client = headers::asks_for_upgrade(request.headers())
        .then(|| request.extensions_mut().remove::<OnUpgrade>())
        .flatten();
    *request.uri_mut() = way.there(request.uri())?;
    *request.version_mut() = Version::HTTP_11;
    headers::to_program(request.headers_mut(), way);
    let stream = held.session.ports().connect(way.port).await?;
    let mut response = ask(gateway, stream, request)
        .await
        .map_err(|error| failed(way, &error))?;
    let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if upgraded {
        let Some(client) = client else {
            return Err(failed(way, &"it changed the protocol without being asked"));
        };
        let program = on(&mut response);
        relay::join(gateway, client, async { program.await.ok().map(TokioIo::new) });
    }
    headers::to_client(response.headers_mut(), way, upgraded);
    response.extensions_mut().insert(PassedOn);
    Ok(response.map(Body::new))
}

async fn ask(
    gateway: &Gateway,
    stream: SandboxStream,
    request: Request,
) -> hyper::Result<hyper::Response<hyper::body::Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let ending = gateway.ending.clone();
    // It ends with the answer's body, or with the client.
    tokio::spawn(async move { ending.run_until_cancelled(connection.with_upgrades()).await });
    sender.send_request(request).await
}

fn moved(way: &Way) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    if let Ok(location) = HeaderValue::from_str(&format!("{}/", way.prefix)) {
        response.headers_mut().insert("location", location);
    }
    response
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets pages of the program, whose origin is their own, send any request by the link.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let name = HeaderName::from_static;
    let headers = response.headers_mut();
    headers.insert(name("access-control-allow-origin"), HeaderValue::from_static("*"));
    for (from, to) in [
        ("access-control-request-method", "access-control-allow-methods"),
        ("access-control-request-headers", "access-control-allow-headers"),
    ] {
        if let Some(value) = asked.get(from) {
            headers.insert(name(to), value.clone());
        }
    }
    response
}

fn failed(way: &Way, error: &dyn Display) -> Problem {
    let port = way.port;
    Problem::new(
        StatusCode::BAD_GATEWAY,
        ErrorKind::ServerError,
        "program_failed",
        format!("the program on port {port} did not answer in HTTP: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_program() {
        let way = Way {
            prefix: "/v1/sessions/s/proxy/80".to_owned(),
            port: 80,
            entry: Entry::Key,
        };
        let there = |path: &str| {
            way.there(&format!("{}{path}", way.prefix).parse().unwrap())
                .unwrap()
        };
        assert_eq!(there("/a%2Fb?c=d&e"), "/a%2Fb?c=d&e");
        assert_eq!(there("//x"), "//x");
        assert_eq!(way.here("/x?y"), Some("/v1/sessions/s/proxy/80/x?y".to_owned()));
        assert_eq!(
            way.here("http://localhost:80/x"),
            Some("/v1/sessions/s/proxy/80/x".to_owned())
        );
        assert_eq!(
            way.here("http://127.0.0.1:80"),
            Some("/v1/sessions/s/proxy/80/".to_owned())
        );
        for other in [
            "x",
            "//evil.example/",
            "https://evil.example/",
            "http://localhost:8080/x",
        ] {
            assert_eq!(way.here(other), None, "{other}");
        }
    }
}
