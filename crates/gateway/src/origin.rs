//! The host that a request is for, and whether the page that makes it comes from there.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// Returns the host that a request names.
pub(crate) fn host(request: &Request) -> Option<Authority> {
    let uri = request.uri().authority().cloned();
    uri.or_else(|| authority(request.headers().get(HOST)))
}

/// Reads a `Host` header.
pub(crate) fn authority(host: Option<&HeaderValue>) -> Option<Authority> {
    let authority: Authority = host?.to_str().ok()?.parse().ok()?;
    // Credentials in a host are nobody's.
    (!authority.as_str().contains('@')).then_some(authority)
}

/// Whether a page came from here.
pub(crate) fn is_own(origin: &HeaderValue, host: Option<&Authority>) -> bool {
    let origin = origin.to_str().ok();
    let origin = origin.and_then(|it| it.strip_prefix("http://").or_else(|| it.strip_prefix("https://")));
    match (origin, host) {
        (Some(origin), Some(host)) => origin.eq_ignore_ascii_case(host.as_str()),
        _ => false,
    }
}
