//! Credentials and parameters that a request presents.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, OriginalUri};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};

/// The host by which the client reached the server that has forwarded its request. A client that
/// sends it gets its own text back.
pub(crate) const FORWARDED_HOST: &str = "cellblock-forwarded-host";

/// Returns the secret of an `Authorization` header with one of these schemes, which are in lower case.
pub(crate) fn secret<'a>(headers: &'a HeaderMap, schemes: &[&str]) -> Option<&'a str> {
    let (scheme, secret) = headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .trim()
        .split_once(' ')?;
    let secret = secret.trim();
    let known = schemes.contains(&scheme.to_ascii_lowercase().as_str());
    (known && !secret.is_empty()).then_some(secret)
}

/// Returns the address that a request comes from, if it is known.
pub(crate) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0)
}

/// Returns the path of a request as the client wrote it, with that of the dialect.
pub(crate) fn path(parts: &Parts) -> &str {
    let original = parts.extensions.get::<OriginalUri>();
    original.map_or(&parts.uri, |OriginalUri(uri)| uri).path()
}

/// Returns a header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the decoded parameters of a query, in which a name may come more than once.
pub(crate) fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}
