//! Proxy before a real API server: it counts requests, and breaks those that a test wants broken.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT_ENCODING, HOST};
use axum::response::{IntoResponse, Response};
use kube::Client;

use super::api::{broken, cut, query, target};
use super::fault::{FaultKind, Faults};

#[derive(Clone)]
struct Proxy {
    /// Sends requests with the credentials that they have.
    client: Client,
    faults: Arc<Faults>,
}

/// Forwards everything to the API server of a client without credentials.
pub(super) fn router(client: Client, faults: Arc<Faults>) -> Router {
    Router::new()
        .fallback(forward)
        .with_state(Proxy { client, faults })
}

async fn forward(State(proxy): State<Proxy>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let fault = target(parts.uri.path().trim_matches('/')).and_then(|target| {
        let method = target.method(parts.method.as_str(), &query(&parts.uri));
        proxy.faults.next(method, target.resource.plural)
    });
    if let Some(FaultKind::Status(code)) = fault {
        return broken(code);
    }
    for header in [HOST, ACCEPT_ENCODING] {
        parts.headers.remove(header);
    }
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let request = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    match proxy.client.send(request).await {
        Ok(_) if fault == Some(FaultKind::Cut) => cut(),
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
