//! Which headers pass between a client and a program in a sandbox.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERER, REFERRER_POLICY, SET_COOKIE, STRICT_TRANSPORT_SECURITY, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::forward::{Entry, Way};
use cellblock_interpreter::egress::remove_hop_by_hop;

use crate::relay::set_upgrade;

/// Makes browsers show what a program answers in an origin of its own: its scripts run, but have neither cookies nor storage, and no
/// answers of the gateway.
const ALONE: HeaderValue =
    HeaderValue::from_static("sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads");

/// Headers of requests that are for the gateway alone.
const OURS: [HeaderName; 3] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("proxy-authorization"),
];

/// The same, except those of a host that is the program's own.
const OF_OUR_PAGES: [HeaderName; 2] = [COOKIE, REFERER];

/// Headers of answers that would change how browsers treat the gateway itself, or other hosts beside it.
const ABOUT_US: [HeaderName; 5] = [
    STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("www-authenticate"),
];

/// Returns whether a request asks for another protocol.
pub(super) fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE)
}

/// Turns a client's headers into those of the request to the program.
pub(super) fn to_program(headers: &mut HeaderMap, way: &Way) {
    let upgrade = headers.get(UPGRADE).cloned();
    remove_hop_by_hop(headers);
    let of_pages = (way.entry != Entry::Host).then_some(OF_OUR_PAGES);
    for name in OURS.into_iter().chain(of_pages.into_iter().flatten()) {
        headers.remove(name);
    }
    if way.entry == Entry::Key {
        // It is the caller's key.
        headers.remove(AUTHORIZATION);
    }
    if let Some(upgrade) = upgrade {
        set_upgrade(headers, upgrade);
    }
    let own = format!("127.0.0.1:{}", way.port);
    let value = |text: &str| HeaderValue::from_str(text).ok();
    if let Some(host) = value(&own) {
        headers.insert(HOST, host);
    }
    // Programs refuse pages of others, and its own pages have no origin that it could know.
    if headers.contains_key(ORIGIN)
        && let Some(origin) = value(&format!("http://{own}"))
    {
        headers.insert(ORIGIN, origin);
    }
    if let Some(prefix) = value(way.shown()).filter(|prefix| !prefix.is_empty()) {
        headers.insert(HeaderName::from_static("x-forwarded-prefix"), prefix);
    }
}

/// Turns a program's headers into those of the answer to the client.
pub(super) fn to_client(headers: &mut HeaderMap, way: &Way, upgraded: bool) {
    let upgrade = headers.get(UPGRADE).cloned();
    remove_hop_by_hop(headers);
    if let (Some(upgrade), true) = (upgrade, upgraded) {
        set_upgrade(headers, upgrade);
    }
    for name in ABOUT_US {
        headers.remove(name);
    }
    if way.entry == Entry::Host {
        keep_cookies_at_home(headers);
    } else {
        keep_apart(headers, way);
    }
    let moved = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    if let Some(location) = moved.and_then(|location| way.here(location)) {
        match HeaderValue::from_str(&location) {
            Ok(location) => headers.insert(LOCATION, location),
            Err(_) => headers.remove(LOCATION),
        };
    }
}

/// Makes an answer at the gateway's own address one of an origin of its own.
fn keep_apart(headers: &mut HeaderMap, way: &Way) {
    let name = HeaderName::from_static;
    for name in [SET_COOKIE, REFERRER_POLICY, name("service-worker-allowed")] {
        headers.remove(name);
    }
    let cors: Vec<_> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control-"))
        .cloned()
        .collect();
    for name in cors {
        headers.remove(name);
    }
    if way.entry == Entry::Link {
        // Its own pages have another origin. Who has the link may read everything anyway.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    // Beside what the program sets itself: browsers apply all policies.
    headers.append(CONTENT_SECURITY_POLICY, ALONE);
    // Its address holds a session's id, or is a link.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Lets cookies be those of this host alone, and not of the hosts of other sessions below the same domain.
fn keep_cookies_at_home(headers: &mut HeaderMap) {
    let cookies: Vec<_> = headers.get_all(SET_COOKIE).iter().cloned().collect();
    headers.remove(SET_COOKIE);
    for cookie in cookies {
        let parts = cookie.to_str().unwrap_or_default().split(';');
        let kept: Vec<_> = parts
            .filter(|part| {
                let name = part.split('=').next().unwrap_or_default();
                !name.trim().eq_ignore_ascii_case("domain")
            })
            .collect();
        if let Ok(kept) = HeaderValue::from_str(&kept.join(";")) {
            headers.append(SET_COOKIE, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(entry: Entry) -> Way {
        Way {
            prefix: "/v1/previews/abc".to_owned(),
            port: 8000,
            entry,
        }
    }

    fn map(headers: &[(&str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&str, &str)| {
            (
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers.iter().map(header) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn a_program_hears_nothing_that_is_for_the_gateway() {
        let mut headers = map(&[
            ("host", "cell.example"),
            ("authorization", "Bearer ck_1"),
            ("x-api-key", "ck_1"),
            ("cookie", "a=1"),
            ("referer", "http://cell.example/v1/previews/abc/"),
            ("connection", "keep-alive, x-secret"),
            ("x-secret", "1"),
            ("origin", "null"),
            ("accept", "text/html"),
        ]);
        to_program(&mut headers, &way(Entry::Key));
        let expected = map(&[
            ("host", "127.0.0.1:8000"),
            ("origin", "http://127.0.0.1:8000"),
            ("accept", "text/html"),
            ("x-forwarded-prefix", "/v1/previews/abc"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_program_cannot_speak_for_the_gateway() {
        let mut headers = map(&[
            ("set-cookie", "a=1"),
            ("strict-transport-security", "max-age=1"),
            ("clear-site-data", "\"*\""),
            ("access-control-allow-origin", "https://evil.example"),
            ("access-control-allow-credentials", "true"),
            ("content-security-policy", "script-src 'self'"),
            ("location", "/login"),
            ("content-type", "text/html"),
        ]);
        to_client(&mut headers, &way(Entry::Link), false);
        let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().cloned().collect();
        assert_eq!(policies, [HeaderValue::from_static("script-src 'self'"), ALONE]);
        headers.remove(CONTENT_SECURITY_POLICY);
        let expected = map(&[
            ("access-control-allow-origin", "*"),
            ("referrer-policy", "no-referrer"),
            ("location", "/v1/previews/abc/login"),
            ("content-type", "text/html"),
        ]);
        assert_eq!(headers, expected);
        assert!(!ALONE.to_str().unwrap().contains("same-origin"));
    }

    #[test]
    fn a_host_of_its_own_leaves_a_program_its_cookies_and_policies_and_no_other_host() {
        let mut headers = map(&[
            ("cookie", "a=1"),
            ("referer", "http://80-a.p.example/"),
            ("x-api-key", "ck_1"),
        ]);
        to_program(&mut headers, &way(Entry::Host));
        let expected = map(&[
            ("cookie", "a=1"),
            ("referer", "http://80-a.p.example/"),
            ("host", "127.0.0.1:8000"),
        ]);
        assert_eq!(headers, expected);
        let mut headers = map(&[
            ("set-cookie", "a=1; Domain=p.example; Path=/"),
            ("set-cookie", "b=2; HttpOnly"),
            ("clear-site-data", "\"*\""),
            ("location", "http://127.0.0.1:8000/login"),
        ]);
        to_client(&mut headers, &way(Entry::Host), false);
        let cookies: Vec<_> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        assert_eq!(cookies, ["a=1; Path=/", "b=2; HttpOnly"]);
        headers.remove(SET_COOKIE);
        assert_eq!(headers, map(&[("location", "/login")]));
    }
}
