//! Credentials of a caller: a token in a header or in the address, or the cookie of somebody who logged in
//! with one as password.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::mint;
use parking_lot::Mutex;

use super::problem::Problem;
use super::state::Jupyter;
use crate::presented::{header, peer, secret};

/// Name of the cookie of a login.
const LOGIN: &str = "cellblock-jupyter";
/// Name of the cookie that a page of another site cannot read.
const XSRF: &str = "_xsrf";
/// Lifetime of a login.
const LASTS: Duration = Duration::from_hours(24);
/// Maximum length of a key and of a token.
const MAX_SECRET: usize = 256;
/// Maximum number of logins; the oldest end first.
const MAX_LOGINS: usize = 1024;

/// Caller of a request.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub(super) Owner);

/// Keys of those who logged in, by their cookies.
#[derive(Debug, Default)]
pub(super) struct Logins(Mutex<HashMap<String, Login>>);

#[derive(Debug)]
struct Login {
    key: String,
    xsrf: String,
    until: Instant,
}

impl Logins {
    fn add(&self, cookie: String, key: String, xsrf: String) -> String {
        let mut logins = self.0.lock();
        let now = Instant::now();
        logins.retain(|_, login| login.until > now);
        if logins.len() >= MAX_LOGINS {
            let oldest = logins.iter().min_by_key(|(_, login)| login.until);
            if let Some(oldest) = oldest.map(|(cookie, _)| cookie.clone()) {
                logins.remove(&oldest);
            }
        }
        let until = now + LASTS;
        logins.insert(cookie.clone(), Login { key, xsrf, until });
        cookie
    }

    /// Returns the key of a login, if the request also shows that no page of another site sent it.
    fn key(&self, headers: &HeaderMap) -> Result<Option<String>, Problem> {
        let Some(cookie) = cookie(headers, LOGIN) else {
            return Ok(None);
        };
        let logins = self.0.lock();
        let Some(login) = logins.get(cookie).filter(|login| login.until > Instant::now()) else {
            return Ok(None);
        };
        if header(headers, "x-xsrftoken") != Some(&login.xsrf) {
            let message = "the header `X-XSRFToken` must have the value of the cookie `_xsrf`";
            return Err(Problem::new(StatusCode::FORBIDDEN, message));
        }
        Ok(Some(login.key.clone()))
    }
}

/// Returns the token of a request.
fn token(parts: &Parts) -> Option<String> {
    let token = secret(&parts.headers, &["token", "bearer"]).map(str::to_owned);
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let mut pairs = url::form_urlencoded::parse(query);
    let token = token.or_else(|| {
        pairs
            .find(|(name, _)| name == "token")
            .map(|(_, token)| token.into_owned())
    });
    token.filter(|token| !token.is_empty())
}

/// Returns the login of a request without a token.
pub(crate) fn named(parts: &Parts) -> Option<String> {
    let cookie = cookie(&parts.headers, LOGIN).map(str::to_owned);
    cookie.filter(|_| token(parts).is_none())
}

impl FromRequestParts<Jupyter> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, jupyter: &Jupyter) -> Result<Self, Problem> {
        let token = match token(parts) {
            Some(token) => Some(token),
            None => jupyter.logins.key(&parts.headers)?.filter(|key| !key.is_empty()),
        };
        let peer = peer(&parts.extensions);
        let owner = jupyter.host.owner(token.as_deref(), parts.uri.path(), peer).await;
        Ok(Self(owner.map_err(|error| {
            // Jupyter's answer to a request without a valid token.
            let problem = Problem::from(error);
            match problem.into_status() {
                (StatusCode::UNAUTHORIZED, message) => Problem::new(StatusCode::FORBIDDEN, message),
                (status, message) => Problem::new(status, message),
            }
        })?))
    }
}

/// `GET /login`: gives the cookie that the login has to show.
pub(super) async fn form() -> Response {
    let cookie = format!("{XSRF}={}; Path=/; SameSite=Strict", mint(""));
    let page =
        "<form method=\"post\"><input type=\"password\" name=\"password\" placeholder=\"API key\"></form>";
    (AppendHeaders([(SET_COOKIE, cookie)]), axum::response::Html(page)).into_response()
}

/// `POST /login`: the password is an API key.
pub(super) async fn login(
    State(jupyter): State<Jupyter>,
    axum::extract::ConnectInfo(peer): axum::extract::ConnectInfo<std::net::SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let fields: HashMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let sent = fields
        .get(XSRF)
        .map(String::as_str)
        .or_else(|| header(&headers, "x-xsrftoken"));
    let xsrf = cookie(&headers, XSRF).filter(|xsrf| !xsrf.is_empty() && Some(*xsrf) == sent);
    let xsrf = xsrf.ok_or_else(|| {
        let message =
            "the field `_xsrf` must have the value of the cookie `_xsrf`; get both from `GET /login`";
        Problem::new(StatusCode::FORBIDDEN, message)
    })?;
    let password = fields.get("password").filter(|it| !it.is_empty()).cloned();
    // Both are kept with the login.
    for (name, text) in [
        ("_xsrf", xsrf),
        ("password", password.as_deref().unwrap_or_default()),
    ] {
        if text.len() > MAX_SECRET {
            let length = text.len();
            return Err(Problem::invalid(format!(
                "`{name}` has {length} bytes, the limit is {MAX_SECRET}"
            )));
        }
    }
    jupyter
        .host
        .owner(password.as_deref(), "/login", Some(peer))
        .await?;
    let cookie = jupyter.logins.add(
        jupyter.host.mint(""),
        password.unwrap_or_default(),
        xsrf.to_owned(),
    );
    let cookie = format!("{LOGIN}={cookie}; Path=/; HttpOnly; SameSite=Strict");
    // The client follows it to a route of its own server.
    let headers = AppendHeaders([(SET_COOKIE, cookie), (LOCATION, "api".to_owned())]);
    Ok((StatusCode::FOUND, headers).into_response())
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter();
    let pairs = all.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    named
        .find(|(it, _)| *it == name)
        .map(|(_, value)| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; _xsrf=\"x\"".parse().unwrap());
        headers.append(COOKIE, "b=2".parse().unwrap());
        assert_eq!(cookie(&headers, "_xsrf"), Some("x"));
        assert_eq!(cookie(&headers, "b"), Some("2"));
        assert_eq!(cookie(&headers, "xsrf"), None);
    }

    #[test]
    fn a_login_counts_only_with_the_token_that_no_other_site_reads() {
        let logins = Logins::default();
        let login = logins.add(mint(""), "key".to_owned(), "x".to_owned());
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, format!("{LOGIN}={login}").parse().unwrap());
        assert!(logins.key(&headers).is_err());
        headers.insert("x-xsrftoken", "x".parse().unwrap());
        assert_eq!(logins.key(&headers).unwrap(), Some("key".to_owned()));
        headers.insert(COOKIE, format!("{LOGIN}=other").parse().unwrap());
        assert_eq!(logins.key(&headers).unwrap(), None);
    }
}
