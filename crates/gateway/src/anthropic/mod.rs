//! Common parts of routes that answer in Anthropic's form: the Messages API itself, and OpenAI's routes for
//! clients that send its header.

pub(crate) mod models;

use std::collections::HashMap;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use cellblock_agent::wire::ApiError;
use chrono::{DateTime, SecondsFormat};

/// The path of the Messages API.
pub(crate) const MESSAGES: &str = "/v1/messages";
/// The headers that only clients of this API send.
const HEADERS: [&str; 2] = ["anthropic-version", "anthropic-beta"];

/// The most things in one answer.
const MOST: usize = 1000;
/// Prefix of a page's cursor.
const CURSOR: &str = "page_";

/// Whether a request is one of Anthropic's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IsAnthropic(pub(crate) bool);

impl IsAnthropic {
    pub(crate) fn of(path: &str, headers: &HeaderMap) -> Self {
        let below = path.strip_prefix(MESSAGES);
        let messages = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        Self(messages || HEADERS.iter().any(|name| headers.contains_key(*name)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IsAnthropic {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts.uri.path(), &parts.headers))
    }
}

/// Reads how many things are wanted.
pub(crate) fn limit(query: &HashMap<String, String>, usual: usize) -> Result<usize, ApiError> {
    let Some(text) = query.get("limit") else {
        return Ok(usual);
    };
    let limit = text.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    limit.ok_or_else(|| {
        let message = format!("`limit` is `{text}`; it can be 1 to {MOST}");
        ApiError::invalid("limit", "invalid_value", message)
    })
}

/// Returns the cursor of the page after an object.
pub(crate) fn cursor(id: &str) -> String {
    format!("{CURSOR}{id}")
}

/// Returns the ID in a cursor; IDs are accepted as they are.
pub(crate) fn id_of_cursor(cursor: &str) -> &str {
    cursor.strip_prefix(CURSOR).unwrap_or(cursor)
}

/// Returns a time in the form of RFC 3339.
pub(crate) fn time(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_or_the_path_tells_which_api_is_meant() {
        let none = HeaderMap::new();
        let mut sent = HeaderMap::new();
        sent.insert("anthropic-version", "2023-06-01".parse().unwrap());
        for (path, headers, is) in [
            ("/v1/messages", &none, true),
            ("/v1/messages/count_tokens", &none, true),
            ("/v1/messagesx", &none, false),
            ("/v1/files", &none, false),
            ("/v1/files", &sent, true),
        ] {
            assert_eq!(IsAnthropic::of(path, headers).0, is, "{path}");
        }
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(time(1_700_000_000_999), "2023-11-14T22:13:20Z");
    }
}
