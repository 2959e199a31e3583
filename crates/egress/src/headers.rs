//! Headers that belong to one connection and are not forwarded.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderValue, Method};

use crate::head::BodyFraming;
use crate::refusal::EgressRefusal;
use crate::target::EgressTarget;

/// The only protocol to which a connection may be upgraded.
const WEBSOCKET: &str = "websocket";

/// Removes the headers of one connection, those that `Connection` names, and `Proxy-*`.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    let proxy: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-"))
        .cloned()
        .collect();
    for name in proxy {
        headers.remove(name);
    }
}

/// Checks the `Host` header. Every request has one, except CONNECT and those of HTTP/1.0.
pub(crate) fn check_host(
    headers: &HeaderMap,
    target: &EgressTarget,
    default_port: u16,
    required: bool,
) -> Result<(), EgressRefusal> {
    let mut values = headers.get_all(HOST).iter();
    let Some(value) = values.next() else {
        return if required {
            Err(EgressRefusal::malformed("the `Host` header is missing"))
        } else {
            Ok(())
        };
    };
    if values.next().is_some() {
        return Err(EgressRefusal::malformed("the `Host` header is duplicated"));
    }
    let named = value
        .to_str()
        .ok()
        .and_then(|text| EgressTarget::parse(text, Some(default_port)).ok());
    if named.as_ref() != Some(target) {
        return Err(EgressRefusal::malformed(&format!(
            "the `Host` header must name `{target}`, as the request does"
        )));
    }
    Ok(())
}

/// Returns whether a request asks for a WebSocket. Other upgrades are refused.
pub(crate) fn wants_websocket(method: &Method, headers: &HeaderMap) -> Result<bool, EgressRefusal> {
    let mut values = headers.get_all(UPGRADE).iter();
    let Some(value) = values.next() else {
        return Ok(false);
    };
    let is_websocket = value.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes());
    if !is_websocket || values.next().is_some() || method != Method::GET {
        return Err(EgressRefusal::upgrade(&String::from_utf8_lossy(value.as_bytes())));
    }
    Ok(true)
}

/// Sets the headers with which a WebSocket is requested or accepted.
pub(crate) fn set_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
}

/// Prepares the headers of a request for the server.
pub(crate) fn prepare(
    headers: &mut HeaderMap,
    target: &EgressTarget,
    default_port: u16,
    framing: BodyFraming,
) {
    remove_hop_by_hop(headers);
    // The proxy itself asks for the body.
    headers.remove(EXPECT);
    if let Ok(host) = HeaderValue::from_str(&target.host_header(default_port)) {
        headers.insert(HOST, host);
    }
    if framing == BodyFraming::Chunked {
        headers.remove(CONTENT_LENGTH);
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn headers_of_one_connection_are_removed() {
        let mut headers = headers(&[
            ("connection", "close, x-one ,X-Two"),
            ("connection", "x-three"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("x-four", "4"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eA=="),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("trailer", "x-four"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
        ]);
        remove_hop_by_hop(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-four"]);
    }

    #[test]
    fn the_host_header_must_agree() {
        let target = EgressTarget::parse("a.example:80", None).unwrap();
        let check = |pairs| check_host(&headers(pairs), &target, 80, true).is_ok();
        assert!(check(&[("host", "A.example")]));
        assert!(check(&[("host", "a.example:80")]));
        for pairs in [
            &[][..],
            &[("host", "b.example")],
            &[("host", "a.example:81")],
            &[("host", "")],
            &[("host", "x@a.example")],
            &[("host", "a.example"), ("host", "a.example")],
        ] {
            assert!(!check(pairs), "{pairs:?}");
        }
        assert!(check_host(&HeaderMap::new(), &target, 80, false).is_ok());
    }

    #[test]
    fn only_a_websocket_is_an_upgrade() {
        let wants =
            |method, pairs| wants_websocket(&method, &headers(pairs)).map_err(|refusal| refusal.reason);
        assert_eq!(wants(Method::GET, &[]), Ok(false));
        assert_eq!(wants(Method::GET, &[("upgrade", "WebSocket")]), Ok(true));
        assert_eq!(wants(Method::POST, &[("upgrade", "websocket")]), Err("upgrade"));
        assert_eq!(wants(Method::GET, &[("upgrade", "h2c")]), Err("upgrade"));
        assert_eq!(
            wants(Method::GET, &[("upgrade", "websocket, h2c")]),
            Err("upgrade")
        );
    }
}
