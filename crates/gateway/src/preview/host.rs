//! A host for each port of a session, `<port>-<session>.<domain>`: its pages have cookies, storage
//! and addresses of their own.
//!
//! ```text
//! /v1/previews/<link>/path at such a host ── cookie ──> /path, and whatever the page asks for
//! ```
//!
//! No route of the gateway is served there. A request with the cookie goes on as one of a link that
//! is valid for a minute, that says so, and that nobody sees: so it finds the gateway that has the
//! session, and nobody else can ask for an answer in this form.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use cellblock_agent::wire::ErrorKind;

use super::{LINKS, PreviewLink};
use crate::now;
use crate::origin;
use crate::problem::Problem;
use crate::state::Gateway;

/// Name of the cookie that holds a link.
const LINKED: &str = "cellblock-preview";
/// For how long the link of one request is valid, which may have to find another gateway first.
const ONE_REQUEST: Duration = Duration::from_mins(1);
/// Number of links that a request may bring.
const MAX_LINKS: usize = 4;

/// The host at which a port of a session is served. A host has no `_`, which an id has instead of `-`.
pub(crate) fn name(domain: &str, session: &str, port: u16) -> String {
    format!("{port}-{}.{domain}", session.replace('_', "-"))
}

/// Answers requests for such hosts, and leaves all others to the gateway.
pub(crate) async fn serve(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    let Some(domain) = &gateway.options.http.preview_domain else {
        return next.run(request).await;
    };
    let Some(host) = host_below(&request, domain) else {
        return next.run(request).await;
    };
    match allow(&gateway, domain, &host, &mut request).await {
        Ok(Some(answer)) => answer,
        Ok(None) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Returns the answer to a link, or lets a request with the cookie go on.
async fn allow(
    gateway: &Gateway,
    domain: &str,
    host: &Authority,
    request: &mut Request,
) -> Result<Option<Response>, Problem> {
    if !is_of_own_page(request.headers(), host) {
        let message = "pages of other hosts may not ask this one";
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            ErrorKind::InvalidRequestError,
            "origin_not_allowed",
            message,
        ));
    }
    let leads_here = |link: &PreviewLink| {
        let own = name(domain, &link.session, link.port);
        !link.own_host && own.eq_ignore_ascii_case(host.host())
    };
    if let Some(linked) = request.uri().path().strip_prefix(LINKS) {
        let (text, rest) = linked.split_once('/').unwrap_or((linked, ""));
        let link = PreviewLink::open(gateway, text).await?;
        if !leads_here(&link) {
            return Err(PreviewLink::unknown());
        }
        let query = request
            .uri()
            .query()
            .map_or_else(String::new, |query| format!("?{query}"));
        let age = link.until.saturating_sub(now());
        let secure = if gateway.options.tls.is_some() {
            "; Secure"
        } else {
            ""
        };
        // Of one `/` at the beginning: two would name a host.
        let place = format!("/{}{query}", rest.trim_start_matches('/'));
        let cookie = format!("{LINKED}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        let headers = [(LOCATION, place), (SET_COOKIE, cookie)];
        return Ok(Some((StatusCode::SEE_OTHER, headers).into_response()));
    }
    let headers = request.headers_mut();
    let links = take_links(headers);
    if links.is_empty() {
        let message = "open a link to this port first; `POST /v1/sessions/{id}/ports/{port}/links` makes one";
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            ErrorKind::InvalidRequestError,
            "link_missing",
            message,
        ));
    }
    // A page of another host below the domain can set more of them.
    let mut found = Err(PreviewLink::unknown());
    for text in links.iter().take(MAX_LINKS) {
        match PreviewLink::open(gateway, text).await {
            Ok(link) if leads_here(&link) => {
                found = Ok(link);
                break;
            }
            Ok(_) => {}
            Err(problem) => found = Err(problem),
        }
    }
    let link = found?;
    // Both have been checked, against what the gateway itself knows nothing of.
    headers.remove(HOST);
    headers.remove(ORIGIN);
    let once = PreviewLink {
        own_host: true,
        ..PreviewLink::new(link.owner, link.session, link.port, ONE_REQUEST)
    };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path = format!("{LINKS}{}{path}", once.sign(gateway).await?);
    *request.uri_mut() =
        Uri::try_from(&path).map_err(|_| Problem::invalid("path", "the path is too long"))?;
    Ok(None)
}

/// The host that a request is for, if it is below the domain.
fn host_below(request: &Request, domain: &str) -> Option<Authority> {
    let host = origin::host(request)?;
    let name = host.host().to_ascii_lowercase();
    let is_below = name
        .strip_suffix(&domain.to_ascii_lowercase())
        .is_some_and(|label| label.ends_with('.'));
    is_below.then_some(host)
}

/// Whether a request comes from a page of the same host, or from a person who opens it. Hosts of
/// other sessions are of the same site, so that browsers send the cookie with what their pages ask
/// for.
fn is_of_own_page(headers: &HeaderMap, host: &Authority) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = headers
        .get(ORIGIN)
        .is_none_or(|origin| origin::is_own(origin, Some(host)));
    let is_opened = text("sec-fetch-mode") == Some("navigate") && text("sec-fetch-dest") == Some("document");
    origin && (is_opened || text("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site)))
}

/// Takes the links out of the cookies; the others are the program's.
fn take_links(headers: &mut HeaderMap) -> Vec<String> {
    let mut links = Vec::new();
    let mut kept = Vec::new();
    for cookies in headers.get_all(COOKIE) {
        for cookie in cookies.to_str().unwrap_or_default().split(';').map(str::trim) {
            match cookie.split_once('=') {
                Some((LINKED, text)) => links.push(text.to_owned()),
                _ => kept.push(cookie),
            }
        }
    }
    let kept = HeaderValue::from_str(&kept.join("; ")).ok();
    headers.remove(COOKIE);
    if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
        headers.insert(COOKIE, kept);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                axum::http::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_link_is_taken_from_between_the_cookies_of_a_program() {
        let mut some = headers(&[("cookie", "a=1; cellblock-preview=abc; b=2")]);
        assert_eq!(take_links(&mut some), ["abc"]);
        assert_eq!(some, headers(&[("cookie", "a=1; b=2")]));
        let mut only = headers(&[("cookie", "cellblock-preview=abc")]);
        assert_eq!(take_links(&mut only), ["abc"]);
        assert_eq!(only, HeaderMap::new());
    }

    #[test]
    fn pages_of_other_hosts_are_told_from_own_ones_and_from_people() {
        let host: Authority = "80-a.p.example:8080".parse().unwrap();
        let document = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let [mode, dest] = document;
        for (expected, pairs) in [
            (true, vec![]),
            (true, vec![("origin", "http://80-a.p.example:8080")]),
            (true, vec![("sec-fetch-site", "same-origin")]),
            (true, vec![("sec-fetch-site", "none"), mode, dest]),
            (true, vec![("sec-fetch-site", "cross-site"), mode, dest]),
            (false, vec![("origin", "http://80-b.p.example:8080")]),
            (false, vec![("origin", "null")]),
            (false, vec![("sec-fetch-site", "same-site")]),
            (false, vec![("sec-fetch-site", "same-site"), mode]),
            (
                false,
                vec![
                    ("origin", "https://evil.example"),
                    ("sec-fetch-site", "cross-site"),
                    mode,
                    dest,
                ],
            ),
        ] {
            assert_eq!(is_of_own_page(&headers(&pairs), &host), expected, "{pairs:?}");
        }
    }
}
