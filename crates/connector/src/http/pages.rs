//! The pages of an answer.

use std::collections::HashSet;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use cellblock_interpreter::connector::{
    Blob, ConnectorError, ConnectorErrorKind, FetchAnswer, LARGE_ANSWER, LargeAnswer, ListPlace, UnreadAnswer,
};
use cellblock_settings::Size;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use url::Url;

use super::HttpConnector;
use super::body::{self, BodyError};
use super::plan::{HttpOperation, PagePlan};
use crate::rows::RowsRead;
use crate::template::plain;

/// The answer so far, and where it goes on.
struct PageProgress {
    rows: Option<RowsRead>,
    /// The page, if it is the answer.
    value: Value,
    next: Option<String>,
}

impl HttpConnector {
    /// Fetches all pages.
    pub(super) async fn fetched(
        &self,
        operation: &Arc<HttpOperation>,
        arguments: &Map<String, Value>,
        until: Instant,
    ) -> Result<FetchAnswer, ConnectorError> {
        let mut request = self.request(operation, arguments)?;
        let first = request.url().clone();
        let rows = operation.rows.as_ref().map(RowsRead::new).transpose();
        let mut rows = rows.map_err(|error| self.malformed(&error.to_string()))?;
        let mut left = self.calls.max_result;
        let mut place = None;
        let mut seen = HashSet::from([first.clone()]);
        loop {
            let repeated = request.try_clone();
            let response = self.answered(request, operation.reads(), until).await?;
            let page = body::whole(response, left)
                .await
                .map_err(|error| self.no_body(&error))?;
            left -= page.len();
            let page = match page {
                // The answer as a whole, which the session reads when there is memory.
                Blob::File(..) if operation.rows.is_none() && operation.pages.is_none() => {
                    let read = whole_value;
                    return Ok(FetchAnswer::Unread(UnreadAnswer {
                        bytes: page,
                        list: Some(ListPlace::Document),
                        read,
                    }));
                }
                page => page,
            };
            let received = self.calls.max_result - left;
            if place.is_none() && received > LARGE_ANSWER as u64 {
                // Once for all pages: what waits for more while it holds some could wait forever.
                let bytes = operation
                    .pages
                    .as_ref()
                    .map_or(received, |_| self.calls.max_result);
                place = Some(LargeAnswer::reserve(bytes).await);
            }
            let plan = Arc::clone(operation);
            let read = spawn_blocking(move || read(&plan, &page, rows)).await;
            let read = read.unwrap_or_else(|_| Err("the host could not read it".to_owned()));
            let read = read.map_err(|error| self.malformed(&error))?;
            let (Some(pages), Some(next), Some(repeated)) = (&operation.pages, read.next, repeated) else {
                return self.finished(operation, read.rows, read.value, place).await;
            };
            rows = read.rows;
            if seen.len() >= pages.most as usize {
                let text = format!(
                    "the answer has more than {} pages, the limit `pages.most`; ask for less at once",
                    pages.most
                );
                return Err(self.malformed(&text));
            }
            let next = self.next(operation, pages, &first, &next)?;
            if !seen.insert(next.clone()) {
                return Err(self.malformed("the pages of the answer lead back to an earlier page"));
            }
            request = repeated;
            *request.url_mut() = next;
        }
    }

    async fn finished(
        &self,
        operation: &Arc<HttpOperation>,
        rows: Option<RowsRead>,
        value: Value,
        place: Option<LargeAnswer>,
    ) -> Result<FetchAnswer, ConnectorError> {
        let Some(rows) = rows else {
            return Ok(FetchAnswer::of_value(value, place));
        };
        let operation = Arc::clone(operation);
        let finished = spawn_blocking(move || match &operation.rows {
            Some(plan) => rows.finish(plan, place),
            None => Err("it has no rows".to_owned()),
        });
        let finished = finished
            .await
            .unwrap_or_else(|_| Err("the host could not read it".to_owned()));
        finished.map_err(|error| self.malformed(&error))
    }

    /// Returns the URL of the next page, which is below `base_url`.
    fn next(
        &self,
        operation: &HttpOperation,
        pages: &PagePlan,
        first: &Url,
        next: &str,
    ) -> Result<Url, ConnectorError> {
        if let Some(parameter) = &pages.parameter {
            let pairs = first
                .query_pairs()
                .into_owned()
                .filter(|(name, _)| name != parameter);
            let pairs: Vec<_> = pairs.collect();
            let mut url = first.clone();
            url.query_pairs_mut()
                .clear()
                .extend_pairs(pairs)
                .append_pair(parameter, next);
            return Ok(url);
        }
        let mut url = first
            .join(next)
            .map_err(|_| self.malformed("the next page has no valid URL"))?;
        let below = self.base.path().trim_end_matches('/');
        let inside = url
            .path()
            .strip_prefix(below)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if url.origin() != self.base.origin() || !inside {
            return Err(self.malformed("the next page is not below `base_url`, so it is not fetched"));
        }
        // Servers leave out keys.
        let known: HashSet<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        let fixed = |name: &str| operation.query.iter().any(|(fixed, _)| fixed == name);
        let missing = first.query_pairs().into_owned();
        let missing: Vec<_> = missing
            .filter(|(name, _)| fixed(name) && !known.contains(name))
            .collect();
        if !missing.is_empty() {
            url.query_pairs_mut().extend_pairs(missing);
        }
        url.set_fragment(None);
        Ok(url)
    }

    fn malformed(&self, text: &str) -> ConnectorError {
        // Shortened after secrets are removed: half a secret would not be found.
        let clean = self.redaction.text(text);
        let text: String = clean.chars().take(500).collect();
        ConnectorError::new(ConnectorErrorKind::Parse, text)
    }

    fn no_body(&self, error: &BodyError) -> ConnectorError {
        match error {
            BodyError::TooLarge(_) => {
                let text = format!(
                    "the answer is larger than {}, the limit `max_result`; ask for less at once",
                    Size(self.calls.max_result)
                );
                self.failed(ConnectorErrorKind::Provider { status: None }, &text)
            }
            BodyError::Broken(error) => self.unreachable(error),
            BodyError::Unkept(error) => {
                tracing::warn!(connector = self.name, %error, "could not keep an answer");
                let text = "the host could not keep the answer; its operator's log has the reason";
                self.failed(ConnectorErrorKind::Provider { status: None }, text)
            }
        }
    }
}

/// Reads a large answer.
fn whole_value(document: &Blob) -> Result<FetchAnswer, ConnectorError> {
    let value: Result<Value, _> = serde_json::from_reader(BufReader::new(document.reader()));
    value.map(FetchAnswer::from).map_err(|error| {
        let text = format!("the answer is not JSON: {error}");
        ConnectorError::new(ConnectorErrorKind::Parse, text)
    })
}

/// Reads a page.
fn read(operation: &HttpOperation, page: &Blob, rows: Option<RowsRead>) -> Result<PageProgress, String> {
    let value = match page {
        Blob::Memory(page) if page.trim_ascii().is_empty() && rows.is_none() => Ok(Value::Null),
        Blob::Memory(page) => serde_json::from_slice(page),
        // In pieces, so that there is no second copy of it in memory.
        file @ Blob::File(..) => serde_json::from_reader(BufReader::new(file.reader())),
    };
    let value: Value = value.map_err(|error| format!("the answer is not JSON: {error}"))?;
    let next = operation.pages.as_ref().and_then(|pages| {
        let next = pages.next.query(&value).first()?;
        plain(next).filter(|text| !text.is_empty() && *next != Value::Bool(false))
    });
    let (rows, value) = match (rows, &operation.rows) {
        (Some(mut rows), Some(plan)) => {
            rows.add(plan, &value)?;
            (Some(rows), Value::Null)
        }
        (rows, _) => (rows, value),
    };
    Ok(PageProgress { rows, value, next })
}
