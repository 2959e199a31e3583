//! Names and pages that may reach a gateway: `Host` and `Origin`.
//!
//! A page of some web site can make its name resolve to 127.0.0.1 and then ask a gateway there as
//! if it were its own server. Its requests carry that name as their `Host`, so on loopback only
//! names are answered that cannot belong to somebody else.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, WARNING};
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::{ApiError, ErrorKind};

use tower_http::cors::CorsLayer;

use super::accept::peer;
use super::mount::{Mount, refused};
use super::observe::REQUEST_ID;
use super::throttle::Throttle;
use crate::origin::{host, is_own};
use crate::preview;
use crate::state::Gateway;

static REFUSALS: Throttle = Throttle::new();

/// Says to browsers which pages may read answers; without configured origins, none but the gateway's own.
pub(super) fn cors(origins: &[String], mounts: &[Mount]) -> CorsLayer {
    let origins: Vec<_> = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok())
        .collect();
    let name = HeaderName::from_static;
    let mut read = vec![
        AUTHORIZATION,
        CONTENT_TYPE,
        REQUEST_ID,
        name("x-api-key"),
        name("api-key"),
        name("anthropic-version"),
        name("anthropic-beta"),
    ];
    let mut written = vec![REQUEST_ID, RETRY_AFTER, WARNING];
    for mount in mounts {
        read.extend_from_slice(mount.read());
        written.extend_from_slice(mount.written());
    }
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers(read)
        .expose_headers(written)
}

/// Refuses requests for other names and from other pages.
pub(super) async fn check(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let options = &gateway.options;
    let headers = request.headers();
    let host = host(&request);
    // Programs may leave it out; browsers cannot.
    let named = headers.contains_key(HOST) || request.uri().authority().is_some();
    let known = host.as_ref().is_some_and(|host| {
        let advertised = options.advertise.as_ref();
        is_known(host, options.listen, &options.http.hosts)
            || advertised.is_some_and(|own| own.host().eq_ignore_ascii_case(host.host()))
    });
    if named && !known {
        let message = "the gateway is not reached by this name; list it under `hosts` if it should be";
        return refuse(&request, "host_not_allowed", message);
    }
    let by_link = request.uri().path().starts_with(preview::LINKS);
    if let Some(origin) = headers.get(ORIGIN).filter(|_| !by_link) {
        let listed = options
            .http
            .origins
            .iter()
            .any(|it| it.as_bytes() == origin.as_bytes());
        if !listed && !is_own(origin, host.as_ref()) {
            let message =
                "pages of this origin may not ask the gateway; list it under `origins` if they should";
            return refuse(&request, "origin_not_allowed", message);
        }
    }
    next.run(request).await
}

fn is_known(host: &Authority, listen: SocketAddr, names: &[String]) -> bool {
    let name = host.host().trim_end_matches('.');
    if names.iter().any(|it| it.eq_ignore_ascii_case(name)) {
        return true;
    }
    if !listen.ip().is_loopback() && names.is_empty() {
        return true;
    }
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    let own = address.is_some_and(|it| it == listen.ip() || it.is_loopback() && is_usual(it));
    own || name.eq_ignore_ascii_case("localhost")
}

/// The two addresses of loopback that everybody knows.
fn is_usual(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 1]) || address == IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1])
}

fn refuse(request: &Request, code: &'static str, message: &str) -> Response {
    if let Some(more) = REFUSALS.pass() {
        let peer = peer(request);
        let header = |name| request.headers().get(name).map(tracing::field::debug);
        tracing::warn!(
            target: crate::SECURITY,
            event = code,
            host = header(HOST),
            origin = header(ORIGIN),
            peer = peer.map(tracing::field::display),
            not_logged = more
        );
    }
    let error = ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some(code.to_owned()),
        message: message.to_owned(),
        param: None,
    };
    refused(
        (StatusCode::FORBIDDEN, axum::Json(&error)).into_response(),
        &error,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::authority;

    fn known(host: &str, listen: &str, names: &[&str]) -> bool {
        let host = authority(Some(&HeaderValue::from_str(host).unwrap()));
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        host.is_some_and(|host| is_known(&host, listen.parse().unwrap(), &names))
    }

    #[test]
    fn on_loopback_only_names_that_nobody_else_has_are_known() {
        let listen = "127.0.0.1:8080";
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1:1",
            "[::1]:8080",
            "localhost.",
        ] {
            assert!(known(host, listen, &[]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "10.0.0.1",
            "a@localhost",
            "127.0.0.2",
            "[::2]",
        ] {
            assert!(!known(host, listen, &[]), "{host}");
        }
        assert!(known("127.0.0.2", "127.0.0.2:80", &[]));
        assert!(known("cell.lan:80", listen, &["cell.lan"]));
        assert!(!known("other.lan", listen, &["cell.lan"]));
    }

    #[test]
    fn beyond_loopback_names_are_checked_when_some_are_listed() {
        let listen = "0.0.0.0:80";
        assert!(known("anything.example", listen, &[]));
        assert!(known("api.example:443", listen, &["api.example"]));
        assert!(!known("anything.example", listen, &["api.example"]));
    }

    #[test]
    fn a_page_is_of_here_when_its_origin_is_the_host() {
        let own = |origin, host: &str| is_own(&HeaderValue::from_static(origin), host.parse().ok().as_ref());
        assert!(own("http://localhost:8080", "localhost:8080"));
        assert!(own("https://api.example", "api.example"));
        for origin in [
            "http://localhost:9",
            "null",
            "file://",
            "http://localhost:8080.evil.example",
        ] {
            assert!(!own(origin, "localhost:8080"), "{origin}");
        }
    }
}
