//! Headers that pass between a client and a program in a sandbox.

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN, REFERER,
    REFERRER_POLICY, SET_COOKIE, STRICT_TRANSPORT_SECURITY, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{PageOrigin, ProgramPort, set_upgrade};
use crate::headers::remove_hop_by_hop;

/// Policy of a page that a program in a sandbox has written: browsers give it an opaque origin. Its
/// scripts run, but have neither cookies nor storage, and cannot read answers of the server.
pub const SEPARATE_ORIGIN: HeaderValue =
    HeaderValue::from_static("sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads");

/// Headers of requests that no program gets: keys of the server.
const KEYS: [HeaderName; 2] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
];

/// Headers of requests from pages of the server, which a program with its own host may have.
const OF_SERVER_PAGES: [HeaderName; 2] = [COOKIE, REFERER];

/// Headers of answers that change how browsers treat the server itself, or other hosts below its domain.
const ABOUT_SERVER: [HeaderName; 3] = [
    STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("clear-site-data"),
];

/// Headers of answers that count for the whole origin, which is the server's.
const ABOUT_ORIGIN: [HeaderName; 4] = [
    SET_COOKIE,
    REFERRER_POLICY,
    WWW_AUTHENTICATE,
    HeaderName::from_static("service-worker-allowed"),
];

/// Prefix of the headers by which an answer lets other pages read it.
const CORS: &str = "access-control-";

impl ProgramPort {
    /// Converts a client's headers to those of the request to the program.
    pub(super) fn to_program(&self, headers: &mut HeaderMap) {
        remove_of_connection(headers, true);
        for name in KEYS {
            headers.remove(name);
        }
        for name in self.private {
            headers.remove(*name);
        }
        let is_own_origin = match &self.origin {
            PageOrigin::Server { root, .. } => {
                for name in OF_SERVER_PAGES {
                    headers.remove(name);
                }
                let root = root.as_deref().and_then(|root| HeaderValue::from_str(root).ok());
                if let Some(root) = root {
                    headers.insert(HeaderName::from_static("x-forwarded-prefix"), root);
                }
                headers.contains_key(ORIGIN)
            }
            // Programs decide themselves which pages of others may read their answers.
            PageOrigin::Host => is_of_host(headers),
        };
        let own = format!("127.0.0.1:{}", self.port);
        let value = |text: &str| HeaderValue::from_str(text).ok();
        // Programs refuse pages of others, and do not know the origin that their own pages have.
        if let Some(origin) = value(&format!("http://{own}")).filter(|_| is_own_origin) {
            headers.insert(ORIGIN, origin);
        }
        if let Some(host) = value(&own) {
            headers.insert(HOST, host);
        }
    }

    /// Converts a program's headers to those of the answer to the client, who requested this path
    /// of the program.
    pub(super) fn to_client(&self, headers: &mut HeaderMap, path: &str, is_upgraded: bool) {
        remove_of_connection(headers, is_upgraded);
        for name in ABOUT_SERVER {
            headers.remove(name);
        }
        match &self.origin {
            PageOrigin::Server { is_readable, .. } => separate(headers, *is_readable),
            PageOrigin::Host => keep_cookies_at_host(headers),
        }
        let moved = headers.get(LOCATION).and_then(|location| location.to_str().ok());
        if let Some(location) = moved.and_then(|location| self.seen(location, path)) {
            match HeaderValue::from_str(&location) {
                Ok(location) => headers.insert(LOCATION, location),
                Err(_) => headers.remove(LOCATION),
            };
        }
    }

    /// Returns an address of the program as the client sees it from a path of the program; `None`
    /// if it is not an absolute one of this program.
    fn seen(&self, address: &str, path: &str) -> Option<String> {
        let own = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{}", self.port));
        let rest = own.iter().find_map(|own| address.strip_prefix(own.as_str()));
        let there = rest.unwrap_or(address);
        let there = match there {
            "" if rest.is_some() => "/",
            there if there.starts_with('/') && !there.starts_with("//") => there,
            _ => return None,
        };
        let root = match &self.origin {
            PageOrigin::Host => "",
            PageOrigin::Server { root: Some(root), .. } => root,
            PageOrigin::Server { root: None, .. } => return Some(relative(there, path)),
        };
        Some(format!("{root}{there}"))
    }
}

/// Returns an address of the program relative to one of its paths.
fn relative(there: &str, path: &str) -> String {
    let depth = path.matches('/').count().saturating_sub(1);
    let up = if depth == 0 {
        "./".to_owned()
    } else {
        "../".repeat(depth)
    };
    up + there.trim_start_matches('/')
}

/// Removes the headers of one connection, except those that ask for another protocol or agree to it.
fn remove_of_connection(headers: &mut HeaderMap, may_upgrade: bool) {
    let protocol = headers.get(UPGRADE).cloned();
    remove_hop_by_hop(headers);
    if let Some(protocol) = protocol.filter(|_| may_upgrade) {
        set_upgrade(headers, protocol);
    }
}

/// Returns whether a request comes from a page of the host that it is for.
fn is_of_host(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
    match (origin, text(HOST)) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

/// Gives an answer at an address of the server a separate origin.
fn separate(headers: &mut HeaderMap, is_readable: bool) {
    for name in ABOUT_ORIGIN {
        headers.remove(name);
    }
    let cors: Vec<_> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(CORS))
        .cloned()
        .collect();
    for name in cors {
        headers.remove(name);
    }
    if is_readable {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    // In addition to what the program sets itself: browsers apply all policies.
    headers.append(CONTENT_SECURITY_POLICY, SEPARATE_ORIGIN);
    // Its address holds the ID of a sandbox, or is a link.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Limits cookies to their host: other sandboxes have hosts below the same domain.
fn keep_cookies_at_host(headers: &mut HeaderMap) {
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
    use http::header::CONNECTION;

    use super::*;

    fn program(origin: PageOrigin) -> ProgramPort {
        ProgramPort {
            port: 8000,
            origin,
            private: &["authorization", "x-user-id"],
        }
    }

    fn below(root: &str) -> PageOrigin {
        PageOrigin::Server {
            root: Some(root.to_owned()),
            is_readable: false,
        }
    }

    fn map(headers: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn a_program_gets_nothing_that_is_for_the_server() {
        let mut headers = map(&[
            ("host", "cell.example"),
            ("authorization", "Bearer cbk_1"),
            ("x-api-key", "cbk_1"),
            ("x-user-id", "u"),
            ("cookie", "a=1"),
            ("referer", "http://cell.example/v1/previews/abc/"),
            ("connection", "keep-alive, x-secret"),
            ("x-secret", "1"),
            ("proxy-authorization", "Basic eA=="),
            ("origin", "null"),
            ("accept", "text/html"),
        ]);
        program(below("/v1/previews/abc")).to_program(&mut headers);
        let expected = map(&[
            ("host", "127.0.0.1:8000"),
            ("origin", "http://127.0.0.1:8000"),
            ("accept", "text/html"),
            ("x-forwarded-prefix", "/v1/previews/abc"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_program_cannot_speak_for_the_server() {
        let answer = map(&[
            ("set-cookie", "a=1"),
            ("strict-transport-security", "max-age=1"),
            ("clear-site-data", "\"*\""),
            ("service-worker-allowed", "/"),
            ("www-authenticate", "Basic"),
            ("access-control-allow-origin", "https://evil.example"),
            ("access-control-allow-credentials", "true"),
            ("content-security-policy", "script-src 'self'"),
            ("location", "/login"),
            ("content-type", "text/html"),
        ]);
        for (is_readable, allowed) in [(false, None), (true, Some("*"))] {
            let mut headers = answer.clone();
            let root = Some("/ports/abc".to_owned());
            program(PageOrigin::Server { root, is_readable }).to_client(&mut headers, "/", false);
            let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().cloned().collect();
            assert_eq!(
                policies,
                [HeaderValue::from_static("script-src 'self'"), SEPARATE_ORIGIN]
            );
            headers.remove(CONTENT_SECURITY_POLICY);
            let readable = headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(readable, allowed.map(HeaderValue::from_static));
            let expected = map(&[
                ("referrer-policy", "no-referrer"),
                ("location", "/ports/abc/login"),
                ("content-type", "text/html"),
            ]);
            assert_eq!(headers, expected);
        }
        assert!(!SEPARATE_ORIGIN.to_str().unwrap().contains("same-origin"));
    }

    #[test]
    fn a_host_of_a_program_keeps_its_cookies_and_other_hosts_get_none() {
        let mut headers = map(&[
            ("set-cookie", "a=1; Domain=p.example; Path=/"),
            ("set-cookie", "b=2;domain = .p.example"),
            ("set-cookie", "c=3; HttpOnly"),
            ("www-authenticate", "Basic"),
            ("access-control-allow-origin", "https://app.example"),
            ("location", "http://localhost:8000/in?x"),
        ]);
        program(PageOrigin::Host).to_client(&mut headers, "/", false);
        let expected = map(&[
            ("set-cookie", "a=1; Path=/"),
            ("set-cookie", "b=2"),
            ("set-cookie", "c=3; HttpOnly"),
            ("www-authenticate", "Basic"),
            ("access-control-allow-origin", "https://app.example"),
            ("location", "/in?x"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_program_with_a_host_knows_its_own_pages_from_those_of_others() {
        let sent = |origin: &str| {
            let mut headers = map(&[("host", "80-i1.p.example"), ("origin", origin), ("cookie", "a=1")]);
            program(PageOrigin::Host).to_program(&mut headers);
            assert_eq!(headers["cookie"], "a=1");
            headers["origin"].to_str().unwrap().to_owned()
        };
        assert_eq!(sent("https://80-i1.p.example"), "http://127.0.0.1:8000");
        assert_eq!(sent("https://app.example"), "https://app.example");
        assert_eq!(sent("null"), "null");
    }

    #[test]
    fn only_an_upgrade_keeps_headers_of_the_connection() {
        for (is_upgraded, expected) in [(false, None), (true, Some("upgrade"))] {
            let mut headers = map(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
            program(PageOrigin::Host).to_client(&mut headers, "/", is_upgraded);
            let connection = headers.get(CONNECTION).and_then(|it| it.to_str().ok());
            assert_eq!(connection, expected);
        }
    }

    #[test]
    fn an_address_of_the_program_is_shown_as_clients_see_it() {
        let known = program(below("/ports/abc"));
        let unknown = program(PageOrigin::Server {
            root: None,
            is_readable: false,
        });
        for (address, path, rooted, relative) in [
            ("/login?a", "/", "/ports/abc/login?a", "./login?a"),
            ("/login", "/a/b", "/ports/abc/login", "../login"),
            ("http://localhost:8000/x", "/a/b/c", "/ports/abc/x", "../../x"),
            ("http://127.0.0.1:8000", "/a", "/ports/abc/", "./"),
        ] {
            assert_eq!(known.seen(address, path).as_deref(), Some(rooted), "{address}");
            assert_eq!(
                unknown.seen(address, path).as_deref(),
                Some(relative),
                "{address}"
            );
        }
        for other in [
            "next",
            "//evil.example/",
            "https://evil.example/",
            "http://localhost:80801/x",
        ] {
            assert_eq!(known.seen(other, "/a/b"), None, "{other}");
            assert_eq!(unknown.seen(other, "/a/b"), None, "{other}");
        }
    }
}
