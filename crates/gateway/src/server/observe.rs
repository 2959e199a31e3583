//! Each request has an id, a span, and is counted, to the end of its answer's body.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use cellblock_agent::wire::Ids;
use cellblock_interpreter::memory;
use http_body_util::BodyExt as _;
use tower_http::timeout::TimeoutBody;
use tracing::Instrument as _;

use super::linger::linger;
use crate::retry;

/// The header with a request's id.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bytes of a body from which on memory is returned after its request.
const LARGE_BODY: u64 = 1 << 20;

/// The id of a request, in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

/// Answers a request in a span of its own.
pub(super) async fn observe(idle: Duration, mut request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).and_then(sane);
    let id: Arc<str> = id.map_or_else(|| Ids::random().mint("req").into(), Into::into);
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    if let Ok(id) = HeaderValue::from_str(&id) {
        // A gateway to which it is forwarded keeps it.
        request.headers_mut().insert(REQUEST_ID, id);
    }
    let matched = request.extensions().get::<MatchedPath>();
    let route: Arc<str> = matched.map_or("unmatched", MatchedPath::as_str).into();
    let method = known(request.method());
    let span = tracing::info_span!(
        "request",
        request_id = &*id,
        method,
        route = &*route,
        owner = tracing::field::Empty,
        status = tracing::field::Empty,
    );
    let is_large = request
        .body()
        .size_hint()
        .upper()
        .is_none_or(|bytes| bytes > LARGE_BODY);
    let mut counted = RequestCount::begin(method, route, is_large);
    // A body that nobody goes on sending does not hold its request for ever.
    let request = linger(request.map(|body| Body::new(TimeoutBody::new(idle, body))));
    let mut response = retry::answer(next.run(request)).instrument(span.clone()).await;
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let status = response.status().as_u16();
    span.record("status", status);
    let milliseconds = counted.since.elapsed().as_millis();
    span.in_scope(|| tracing::info!(milliseconds, "answered"));
    counted.status = Some(status);
    response.map(|body| {
        // The closure goes with the body, which is dropped when it was sent or nobody wants it any more.
        let hold = move |error| {
            let _held = &counted;
            error
        };
        Body::new(body.map_err(hold))
    })
}

/// An id that a client chose and that can stand in a log.
fn sane(id: &HeaderValue) -> Option<&str> {
    let id = id.to_str().ok()?;
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    ((1..=128).contains(&id.len()) && id.bytes().all(fine)).then_some(id)
}

/// The method's name; clients can make up others.
fn known(method: &Method) -> &'static str {
    let known = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::HEAD,
        Method::OPTIONS,
    ];
    let names = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    known
        .iter()
        .position(|it| it == method)
        .map_or("OTHER", |at| names[at])
}

/// A request that is being answered. It is counted when this is dropped: also where its client has
/// gone before there was an answer.
struct RequestCount {
    method: &'static str,
    route: Arc<str>,
    status: Option<u16>,
    since: Instant,
    has_large_body: bool,
}

impl RequestCount {
    fn begin(method: &'static str, route: Arc<str>, has_large_body: bool) -> Self {
        crate::metrics::request_began();
        Self {
            method,
            route,
            status: None,
            since: Instant::now(),
            has_large_body,
        }
    }
}

impl Drop for RequestCount {
    fn drop(&mut self) {
        crate::metrics::request_ended(self.method, &self.route, self.status, self.since.elapsed());
        if self.has_large_body {
            memory::settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_client_is_taken_when_it_can_stand_in_a_log() {
        for (id, taken) in [
            ("req_1.a:B-2", true),
            ("", false),
            ("a b", false),
            ("a\tb", false),
            ("<script>", false),
        ] {
            assert_eq!(sane(&HeaderValue::from_str(id).unwrap()).is_some(), taken, "{id}");
        }
        let long = "x".repeat(129);
        assert_eq!(sane(&HeaderValue::from_str(&long).unwrap()), None);
    }
}
