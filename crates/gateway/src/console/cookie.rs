//! The cookie that stands for a key, and which requests may use it.

use axum::http::header::{COOKIE, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::ticket::{ConsoleTicket, LIFE};
use crate::problem::Problem;
use crate::state::Gateway;

/// Header of the console's own requests. A page of another origin can send it only after the server
/// has agreed, which it never does: CORS does not allow it.
const HEADER: HeaderName = HeaderName::from_static("x-cellblock-console");
/// Name of the cookie.
const NAME: &str = "cellblock_console";
/// Header in which browsers say what kind of page makes a request.
const SITE: &str = "sec-fetch-site";

/// Whether the console's own pages make a request, as far as a browser can be believed.
pub(super) fn is_own(headers: &HeaderMap) -> bool {
    let site = headers.get(SITE);
    headers.contains_key(HEADER) && site.is_none_or(|site| site == "same-origin")
}

/// Returns the valid ticket in the cookie of a request that the console itself makes.
pub(super) async fn ticket(gateway: &Gateway, headers: &HeaderMap) -> Result<Option<ConsoleTicket>, Problem> {
    match cookie(headers) {
        Some(text) if is_own(headers) => ConsoleTicket::open(gateway, text).await,
        _ => Ok(None),
    }
}

/// Returns the header that sets the cookie.
pub(super) fn set(headers: &HeaderMap, value: &str) -> String {
    format!(
        "{NAME}={value}; Max-Age={}; {}",
        LIFE.as_secs(),
        attributes(headers)
    )
}

/// Returns the header that removes it.
pub(super) fn remove(headers: &HeaderMap) -> String {
    format!("{NAME}=; Max-Age=0; {}", attributes(headers))
}

fn attributes(headers: &HeaderMap) -> &'static str {
    // The browser knows whether the way to here is encrypted; a proxy may end TLS before this server.
    let encrypted = headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    if encrypted {
        "Path=/; HttpOnly; SameSite=Strict; Secure"
    } else {
        "Path=/; HttpOnly; SameSite=Strict"
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get_all(COOKIE).iter();
    sent.filter_map(|value: &HeaderValue| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == NAME).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_the_consoles_own_requests_use_its_cookie() {
        assert!(is_own(&headers(&[("x-cellblock-console", "1")])));
        assert!(is_own(&headers(&[
            ("x-cellblock-console", "1"),
            ("sec-fetch-site", "same-origin")
        ])));
        assert!(!is_own(&headers(&[("sec-fetch-site", "same-origin")])));
        for site in ["cross-site", "same-site", "none"] {
            let sent = headers(&[("x-cellblock-console", "1"), ("sec-fetch-site", site)]);
            assert!(!is_own(&sent), "{site}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others_and_no_script_can_read_it() {
        let sent = headers(&[("cookie", "a=1; cellblock_console=x.y; b=2")]);
        assert_eq!(cookie(&sent), Some("x.y"));
        assert_eq!(cookie(&headers(&[("cookie", "not_cellblock_console=x")])), None);
        let plain = set(&HeaderMap::new(), "x");
        assert!(plain.contains("HttpOnly; SameSite=Strict") && !plain.contains("Secure"));
        assert!(set(&headers(&[("origin", "https://a.example")]), "x").ends_with("; Secure"));
    }
}
