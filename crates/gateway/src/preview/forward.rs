//! One request to a program in a sandbox, and its answer.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use cellblock_agent::wire::ErrorKind;
use cellblock_interpreter::egress::inbound::{self, PageOrigin, ProgramPort, program_uri};

use crate::keys::Secret;
use crate::problem::Problem;
use crate::state::Gateway;
use crate::state::sessions::HostedSession;

/// Origin and destination of a forwarded request.
#[derive(Debug)]
pub(super) struct PreviewRoute {
    /// Path of the program's root at the gateway, without a `/` at its end.
    pub(super) prefix: String,
    pub(super) port: u16,
    pub(super) entry: PreviewAccess,
}

/// Permission that lets a request in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviewAccess {
    /// The caller's key.
    Key,
    /// A link, at the gateway's own address.
    Link,
    /// A link, at a host that serves nothing else.
    Host,
}

impl PreviewRoute {
    /// Returns the program as the client sees it.
    fn program(&self, asked: &HeaderMap) -> ProgramPort {
        // At its own host, pages and clients of the program send it credentials of its own.
        let is_private = self.entry != PreviewAccess::Host || shows_key(asked);
        ProgramPort {
            port: self.port,
            origin: match self.entry {
                PreviewAccess::Host => PageOrigin::Host,
                entry => PageOrigin::Server {
                    root: Some(self.prefix.clone()),
                    // Its own pages have another origin. Who has the link may read everything anyway.
                    is_readable: entry == PreviewAccess::Link,
                },
            },
            private: if is_private { &["authorization"] } else { &[] },
        }
    }
}

/// Sends a request to the program, and returns its answer.
pub(super) async fn forward(
    gateway: &Gateway,
    held: &HostedSession,
    way: &PreviewRoute,
    mut request: Request,
) -> Result<Response, Problem> {
    if request.uri().path() == way.prefix {
        // Relative addresses of its page would miss the program.
        return Ok(moved(way));
    }
    if way.entry == PreviewAccess::Link && is_preflight(&request) {
        return Ok(preflight(request.headers()));
    }
    let there = program_uri(request.uri(), &way.prefix);
    *request.uri_mut() = there.map_err(|path| Problem::invalid("path", format!("`{path}` is not a path")))?;
    let program = way.program(request.headers());
    let stream = held.session.ports().connect(way.port).await?;
    let answer = inbound::forward(&program, stream, request, &gateway.forward_scope(), ()).await;
    let answer = answer.map_err(|error| {
        let port = way.port;
        let message = format!("the program on port {port} did not answer in HTTP: {error}");
        Problem::new(
            StatusCode::BAD_GATEWAY,
            ErrorKind::ServerError,
            "program_failed",
            message,
        )
    })?;
    Ok(answer.map(Body::new))
}

/// Returns whether the `Authorization` header has a key of the gateway.
fn shows_key(headers: &HeaderMap) -> bool {
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    shown
        .and_then(|value| value.split_once(' '))
        .is_some_and(|(_, secret)| Secret::parse(secret.trim()).is_some())
}

fn moved(way: &PreviewRoute) -> Response {
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
