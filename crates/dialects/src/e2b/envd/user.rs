//! User of requests to the daemon. A sandbox has one; a request that names another would not run as that one.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::error::Problem;
use super::connect::{self, Fault};
use crate::presented::{pairs, secret};

/// The user of a sandbox's programs and files.
pub(super) const USER: &str = "user";

/// Passes requests on that name no user, or that one.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let named = [by_header(&request), by_query(&request)];
    let Some(other) = named
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty() && name != USER)
    else {
        return next.run(request).await;
    };
    let why = "programs and files of a sandbox belong to `user`, without root; leave `user` out. Packages \
               are installed with `pip install`, or by the operator into the server's image";
    let refused = Problem::unenforced("user", &other, why);
    if request.uri().path().starts_with("/files") {
        return refused.into_response();
    }
    connect::answer(request.headers(), Err(Fault::from(refused)))
}

/// Reads the user of basic authorization, which has no password.
fn by_header(request: &Request) -> Option<String> {
    let encoded = secret(request.headers(), &["basic"])?;
    let decoded = STANDARD
        .decode(encoded)
        .ok()
        .and_then(|it| String::from_utf8(it).ok());
    let text = decoded.unwrap_or_else(|| encoded.to_owned());
    Some(text.split(':').next().unwrap_or_default().to_owned())
}

fn by_query(request: &Request) -> Option<String> {
    let mut pairs = pairs(request.uri().query().unwrap_or_default()).into_iter();
    pairs.find(|(name, _)| name == "username").map(|(_, value)| value)
}
