//! Pages of lists: their parameters, and the token of the next one.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cellblock_interpreter::hosting::ResidentGuard;
use cellblock_settings::clock::since_epoch;

use super::super::error::{Answer, Problem};
use crate::session::{DialectSession, DialectSessions};

/// Entries of a page, unless a request says otherwise; also the maximum.
const PAGE: usize = 100;

/// An entry of a list.
type ListEntry<T> = ResidentGuard<DialectSession<T>>;

/// A page that a client requests.
#[derive(Debug)]
pub(super) struct PageRequest {
    limit: usize,
    /// The last entry of the page before: when it was created, and its id.
    after: Option<(u128, String)>,
    pub(super) oldest_first: bool,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            limit: PAGE,
            after: None,
            oldest_first: false,
        }
    }
}

impl PageRequest {
    /// Reads a parameter. Returns whether it is one of a page.
    pub(super) fn read(&mut self, name: &str, value: &str) -> Answer<bool> {
        match name {
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=PAGE).contains(limit));
                self.limit = limit.ok_or_else(|| {
                    Problem::invalid(format!("invalid limit `{value}`: must be between 1 and {PAGE}"))
                })?;
            }
            "nextToken" if value.is_empty() => {}
            "nextToken" => {
                let token = read_token(value);
                self.after = Some(token.ok_or_else(|| Problem::invalid("invalid next token"))?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns an owner's entries from the page's first on.
    pub(super) fn select<T: Send + Sync + 'static>(
        &self,
        all: &DialectSessions<T>,
        owner: &str,
        fits: impl Fn(&ListEntry<T>) -> bool,
    ) -> Vec<ListEntry<T>> {
        let mut own = all.of(owner);
        if !self.oldest_first {
            own.reverse();
        }
        // A list does not keep anything from expiring.
        let held = own
            .iter()
            .filter_map(cellblock_interpreter::hosting::Resident::peek);
        held.filter(|it| self.is_after(it) && fits(it)).collect()
    }

    /// Removes the entries of later pages, and returns the header that names the next one.
    pub(super) fn cut<T>(&self, held: &mut Vec<ListEntry<T>>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if held.len() > self.limit {
            held.truncate(self.limit);
            let last = held
                .last()
                .map(token)
                .and_then(|it| HeaderValue::try_from(it).ok());
            headers.extend(last.map(|last| (HeaderName::from_static("x-next-token"), last)));
        }
        headers
    }

    fn is_after<T>(&self, held: &ListEntry<T>) -> bool {
        let key = key(held);
        self.after.as_ref().is_none_or(|after| {
            if self.oldest_first {
                key > *after
            } else {
                key < *after
            }
        })
    }
}

fn key<T>(held: &ListEntry<T>) -> (u128, String) {
    (since_epoch(held.created).as_nanos(), held.id.clone())
}

fn token<T>(held: &ListEntry<T>) -> String {
    let (created, id) = key(held);
    URL_SAFE_NO_PAD.encode(format!("{created} {id}"))
}

fn read_token(text: &str) -> Option<(u128, String)> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (created, id) = text.split_once(' ')?;
    Some((created.parse().ok()?, id.to_owned()))
}
