//! Metrics and log of calls. Arguments are logged without secrets, answers are not.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{counter, histogram};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::grants::GrantTerms;
use super::sample::sample;
use super::{Connector, Redaction};
use crate::host_call::shown;
use crate::output::redact;

/// Target of the log line for each call.
const FETCHES: &str = "cellblock::fetches";
/// Outcome of a call that its cell did not wait for.
pub(super) const CANCELED: &str = "canceled";
/// Labels of calls that name no function of the session, of functions of a session's client, and of
/// functions beyond the limit.
const UNKNOWN: &str = "(unknown)";
const REQUESTED: &str = "(requested)";
const OTHER: &str = "(other)";
/// Maximum number of functions with labels of their own; servers can make up others.
const LABELED: usize = 1000;
/// Maximum number of characters of arguments in the log.
const CHARS: usize = 1000;

/// A call that runs. When it is dropped, it is counted and logged.
#[derive(Debug)]
pub(super) struct CountedFetch {
    terms: Arc<GrantTerms>,
    connector: String,
    function: String,
    /// Connector and function in metrics.
    labels: (String, String),
    /// The arguments, if calls are logged.
    arguments: Option<Value>,
    redaction: Redaction,
    since: Instant,
    outcome: &'static str,
    /// Size of the answer in bytes.
    bytes: Option<u64>,
    cached: bool,
}

impl CountedFetch {
    pub(super) fn begin(terms: &Arc<GrantTerms>, connector: &str, function: &str) -> Self {
        Self {
            terms: Arc::clone(terms),
            connector: shown(connector),
            function: shown(function),
            labels: (UNKNOWN.to_owned(), UNKNOWN.to_owned()),
            arguments: None,
            redaction: Redaction::default(),
            since: Instant::now(),
            outcome: CANCELED,
            bytes: None,
            cached: false,
        }
    }

    /// The session has the connector. One that is lent was named by a request.
    pub(super) fn granted(&mut self, connector: &dyn Connector, lent: bool) {
        self.redaction = connector.redaction().clone();
        let label = if lent { REQUESTED } else { connector.name() };
        label.clone_into(&mut self.labels.0);
    }

    /// The connector has the function.
    pub(super) fn found(&mut self) {
        self.labels.1 = match &*self.labels.0 {
            REQUESTED => REQUESTED.to_owned(),
            connector => bounded(connector, &self.function),
        };
    }

    /// Keeps the arguments for the log.
    pub(super) fn arguments(&mut self, arguments: &Map<String, Value>) {
        let logged = tracing::enabled!(target: FETCHES, tracing::Level::INFO);
        self.arguments = logged.then(|| arguments.clone().into());
    }

    pub(super) fn answered(&mut self, bytes: u64, cached: bool) {
        (self.outcome, self.bytes, self.cached) = ("ok", Some(bytes), cached);
    }

    pub(super) fn failed(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns the arguments as JSON, without the connector's secrets and what looks like one, and
    /// without what is long.
    fn logged_arguments(&mut self) -> Option<String> {
        let mut arguments = self.arguments.take()?;
        // Before anything is cut, so that no part of a secret is left.
        self.redaction.value(&mut arguments);
        let text = redact(&sample(&arguments).to_string());
        Some(text.chars().take(CHARS).collect())
    }
}

impl Drop for CountedFetch {
    fn drop(&mut self) {
        let (connector, function) = std::mem::take(&mut self.labels);
        let labels = [
            ("connector", connector.clone()),
            ("function", function),
            ("outcome", self.outcome.to_owned()),
            ("cached", self.cached.to_string()),
        ];
        counter!("cellblock_fetches_total", &labels).increment(1);
        let took = self.elapsed();
        if !self.cached && self.outcome != CANCELED {
            counter!("cellblock_fetched_bytes_total", "connector" => connector.clone())
                .increment(self.bytes.unwrap_or(0));
            histogram!("cellblock_fetch_seconds", "connector" => connector).record(took);
        }
        let arguments = self.logged_arguments();
        tracing::info!(
            target: FETCHES,
            session = self.terms.session,
            owner = self.terms.allowance.as_ref().map(|allowance| allowance.owner()),
            connector = self.connector,
            function = self.function,
            arguments,
            outcome = self.outcome,
            cached = self.cached,
            bytes = self.bytes,
            milliseconds = took.as_millis(),
        );
    }
}

/// Returns a function's name as a label.
fn bounded(connector: &str, function: &str) -> String {
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_with(HashSet::new);
    let name = format!("{connector}.{function}");
    if !known.contains(&name) && known.len() >= LABELED {
        return OTHER.to_owned();
    }
    known.insert(name);
    function.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn logged_arguments_have_no_secrets_and_are_short() {
        let mut fetch = CountedFetch::begin(&Arc::default(), "fred", "series");
        fetch.redaction = Redaction::new(["hunter2/and+more"]);
        let arguments = json!({
            "id": format!("{}hunter2/and+more", "x".repeat(190)),
            "password": "swordfish",
            "url": "https://a.example/?api_key=123456",
            "text": "é".repeat(5000),
        });
        fetch.arguments = Some(arguments);
        let text = fetch.logged_arguments().unwrap();
        for secret in ["hunter2", "swordfish", "123456"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("https://a.example/?api_key=[redacted]"), "{text}");
        assert!(text.chars().count() <= CHARS, "{text}");
    }

    #[test]
    fn only_so_many_functions_have_labels_of_their_own() {
        let labels: HashSet<_> = (0..2 * LABELED)
            .map(|number| bounded("made_up", &format!("f_{number}")))
            .collect();
        assert!(labels.len() <= LABELED + 1, "{}", labels.len());
        assert!(labels.contains(OTHER));
    }
}
