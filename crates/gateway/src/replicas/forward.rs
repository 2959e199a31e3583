//! Sends a request to another gateway as it is, and answers with what comes back while it comes.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{EXPECT, HOST, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::egress::inbound::{ProgramAnswer, set_upgrade};
use cellblock_interpreter::egress::remove_hop_by_hop;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use reqwest::Url;

use super::broken_socket::ClosingSocket;
use super::broken_stream::ended_in_words;
use super::{FORWARDED_BY, FORWARDED_HOST, unreachable};
use crate::problem::Problem;
use crate::records::holders::HoldingGateway;
use crate::retry;
use crate::state::Gateway;

/// Seconds after which a gateway that does not answer may have lost its lease.
const RETRY: u64 = 5;

/// Headers that the next server sets or has no use for: this one has checked the origin.
const OWN: [HeaderName; 5] = [EXPECT, HOST, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION];

/// Sends a request, and answers with what comes back.
pub(super) async fn send(gateway: &Gateway, holder: &HoldingGateway, request: Request) -> Response {
    match sent(gateway, holder, request).await {
        Ok(answer) => answer,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Does the same, and returns why nothing came back.
pub(super) async fn sent(
    gateway: &Gateway,
    holder: &HoldingGateway,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    // A WebSocket, or another protocol that the client asks for.
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let upgrade = upgrade.zip(parts.headers.get(UPGRADE).cloned());
    let path = parts
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let headers = carried(&parts.headers, gateway);
    let url = url(holder, &path)?;
    let client = gateway
        .forwarder
        .client()
        .map_err(|error| failed(holder, &error))?;
    let mut request = client.request(parts.method, url).headers(headers);
    if !body.is_end_stream() {
        let pieces = SharedBody(Mutex::new(body.into_data_stream()));
        request = request.body(reqwest::Body::wrap(StreamBody::new(pieces.map_ok(Frame::data))));
    }
    if let Some((_, protocol)) = &upgrade {
        let mut switch = HeaderMap::new();
        set_upgrade(&mut switch, protocol.clone());
        request = request.headers(switch);
    }
    let answer = request.send().await.map_err(|error| failed(holder, &error))?;
    crate::metrics::forwarded("answered");
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some((here, protocol)) = upgrade
    {
        let mut switched = Response::new(Body::empty());
        *switched.status_mut() = answer.status();
        *switched.headers_mut() = answer.headers().clone();
        drop_own(switched.headers_mut());
        set_upgrade(switched.headers_mut(), protocol);
        let there = answer.upgrade().await.map_err(|error| failed(holder, &error))?;
        let is_websocket = switched
            .headers()
            .get(UPGRADE)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
        let there = ClosingSocket::new(there, is_websocket);
        gateway.forward_scope().join(here, ready(Some(there)), ());
        return Ok(switched);
    }
    let mut answer = axum::http::Response::from(answer).map(Body::new);
    drop_own(answer.headers_mut());
    // The other gateway has completed it, if it is its own.
    answer.extensions_mut().insert(ProgramAnswer);
    Ok(ended_in_words(answer, &path, holder))
}

/// The URL of a path at a gateway.
pub(super) fn url(holder: &HoldingGateway, path: &str) -> Result<Url, ApiError> {
    let Some(address) = &holder.address else {
        let problem = "has no address: set `advertise` there to the URL at which this gateway reaches it";
        return Err(unreachable(holder, "gateway_unreachable", problem));
    };
    Url::parse(&format!("{address}{path}")).map_err(|error| failed(holder, &error))
}

/// The headers that go on to another gateway.
pub(super) fn carried(headers: &HeaderMap, gateway: &Gateway) -> HeaderMap {
    let host = headers.get(HOST).cloned();
    let mut headers = headers.clone();
    drop_own(&mut headers);
    // Some answers tell the client where to send more requests.
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host);
    }
    if let Ok(id) = HeaderValue::from_str(&gateway.id) {
        headers.insert(FORWARDED_BY, id);
    }
    headers
}

fn drop_own(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    for name in OWN {
        headers.remove(name);
    }
}

/// The error for a gateway that does not answer. Its address stays in the log.
pub(super) fn failed(holder: &HoldingGateway, error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::warn!(
        holder = holder.id,
        address = holder.address,
        error,
        "forward a request"
    );
    retry::after(RETRY);
    let connecting = error
        .downcast_ref::<reqwest::Error>()
        .is_some_and(reqwest::Error::is_connect);
    crate::metrics::forwarded(if connecting { "unreachable" } else { "failed" });
    if connecting {
        let problem = "does not accept connections; send the request again: if that gateway has ended, \
                       its lease expires within 30 seconds";
        return unreachable(holder, "gateway_unreachable", problem);
    }
    let problem = "did not answer; it may have done what the request asks";
    unreachable(holder, "gateway_failed", problem)
}

/// The pieces of a body that threads may share: it is polled by one at a time.
struct SharedBody(Mutex<BodyDataStream>);

impl Stream for SharedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pieces = self.0.get_mut();
        pieces.poll_next_unpin(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_are_not_carried_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, x-mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("host", "a.example"),
            ("authorization", "Bearer key"),
            ("content-length", "3"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        drop_own(&mut headers);
        let mut kept: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["authorization", "content-length"]);
    }
}
