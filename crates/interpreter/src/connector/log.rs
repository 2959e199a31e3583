//! Log of what code fetched in a cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use cellblock_artifact::ArtifactId;
use cellblock_settings::clock;
use chrono::{DateTime, SecondsFormat};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::ConnectorError;
use super::answer::StoredAnswer;
use super::counted::{CANCELED, CountedFetch};
use super::sample::sample;
use super::store::TableStorage;
use crate::output::ArtifactRef;

/// Maximum number of calls of a cell that are recorded.
const RECORDS: usize = 200;
/// Outcome of a call that was not made.
const REHEARSED: &str = "rehearsed";
/// Maximum number of characters of a name that code made up.
const NAME_CHARS: usize = 64;

/// A call of a connector.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FetchRecord {
    /// The connector.
    pub connector: String,
    /// The function, by its name in code.
    pub function: String,
    /// The arguments with defaults; long ones are cut, which "…" marks.
    pub arguments: Map<String, Value>,
    /// `ok`, `rehearsed` for a call that was not made, `canceled`, or the kind of the failure:
    /// `unauthorized`, `payment_required`, `rate_limit`, `provider`, `empty_data`, `parse`,
    /// `invalid_parameter`, `timeout` or `not_granted`.
    pub outcome: &'static str,
    /// Message of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds after which the call may succeed, if it failed because of a rate limit and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
    /// Whether the answer is that of an earlier equal call.
    pub cached: bool,
    /// Time at which the answer arrived, as RFC 3339; for a cached one, the time of the first call's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<String>,
    /// Size of the answer in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Number of rows, if the answer is a table or a list of objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_count: Option<u64>,
    /// Names of the rows' fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The first 5 rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub head: Vec<Value>,
    /// The last 5 rows, without those in `head`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Value>,
    /// The table as Parquet, if the answer is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    /// Reason that the table could not be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Duration of the call in milliseconds.
    pub duration_ms: f64,
}

impl FetchRecord {
    /// Whether the cell ended before the answer arrived.
    pub fn is_canceled(&self) -> bool {
        self.outcome == CANCELED
    }

    /// Says that the cell was stopped while it waited for this fetch, if it was.
    pub(crate) fn why_stopped(&self) -> Option<String> {
        let (connector, function) = (&self.connector, &self.function);
        self.is_canceled()
            .then(|| format!("the cell was stopped while it waited for `{connector}.{function}`"))
    }

    /// Returns the stored table.
    pub(crate) fn artifact_id(&self) -> Option<ArtifactId> {
        Some(self.artifact.as_ref()?.sha256)
    }

    /// Names what was fetched: the call, and when its answer arrived. `None` if there was no answer.
    pub(crate) fn reference(&self) -> Option<String> {
        let at = self.fetched_at.as_ref()?;
        let arguments = Value::Object(self.arguments.clone());
        Some(format!(
            "{}.{}({arguments}) at {at}",
            self.connector, self.function
        ))
    }
}

/// The calls of the cell that runs.
#[derive(Debug, Default)]
pub(super) struct FetchLog(Mutex<Records>);

#[derive(Debug, Default)]
struct Records {
    kept: Vec<FetchRecord>,
    /// Tables of these records that are on their way into the store.
    storing: Vec<(usize, TableStorage)>,
    dropped: u32,
}

impl FetchLog {
    /// Records a call. It is canceled unless its end is recorded, too.
    pub(super) fn begin(
        self: &Arc<Self>,
        connector: &str,
        function: &str,
        arguments: &Map<String, Value>,
        mut counted: CountedFetch,
    ) -> OpenRecord {
        counted.arguments(arguments);
        let name = |name: &str| name.chars().take(NAME_CHARS).collect();
        let mut records = self.lock();
        let at = (records.kept.len() < RECORDS).then_some(records.kept.len());
        if at.is_some() {
            records.kept.push(FetchRecord {
                connector: name(connector),
                function: name(function),
                arguments: sampled(arguments),
                outcome: CANCELED,
                error: None,
                retry_after: None,
                cached: false,
                fetched_at: None,
                bytes: None,
                row_count: None,
                columns: Vec::new(),
                head: Vec::new(),
                tail: Vec::new(),
                artifact: None,
                note: None,
                duration_ms: 0.0,
            });
        } else {
            records.dropped = records.dropped.saturating_add(1);
        }
        OpenRecord {
            log: Arc::clone(self),
            at,
            rehearsed: false,
            counted,
        }
    }

    /// Takes the records, and the number of calls beyond the limit. Waits until their tables are stored.
    pub(super) async fn take(&self) -> (Vec<FetchRecord>, u32) {
        let Records {
            mut kept,
            storing,
            dropped,
        } = std::mem::take(&mut *self.lock());
        for (at, storing) in storing {
            let stored = storing.ended().await;
            let Some(record) = kept.get_mut(at) else { continue };
            match stored {
                Ok(artifact) => record.artifact = Some(artifact),
                Err(why) => record.note = Some(format!("the table could not be stored: {why}")),
            }
        }
        (kept, dropped)
    }

    /// Returns the calls that have ended so far, and the tables of these that are stored.
    pub(super) fn references(&self) -> (BTreeSet<String>, BTreeSet<ArtifactId>) {
        let records = self.lock();
        let references = records.kept.iter().filter_map(FetchRecord::reference).collect();
        let stored = records.storing.iter().filter_map(|(_, storing)| storing.stored());
        (references, stored.map(|artifact| artifact.sha256).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock()
    }
}

/// The record of a call that has not ended.
#[derive(Debug)]
pub(super) struct OpenRecord {
    log: Arc<FetchLog>,
    at: Option<usize>,
    /// Whether the call is only rehearsed.
    rehearsed: bool,
    pub(super) counted: CountedFetch,
}

impl OpenRecord {
    /// Records the arguments as the connector gets them.
    pub(super) fn bound(&mut self, arguments: &Map<String, Value>) {
        self.counted.arguments(arguments);
        self.change(|record| record.arguments = sampled(arguments));
    }

    /// Records that the call is not made.
    pub(super) const fn rehearsed(&mut self) {
        self.rehearsed = true;
    }

    pub(super) fn end(mut self, result: Result<(&StoredAnswer, bool), &ConnectorError>) {
        let duration = self.counted.elapsed();
        let ok = if self.rehearsed { REHEARSED } else { "ok" };
        match &result {
            Ok((answer, cached)) => self.counted.answered(answer.bytes.len(), *cached),
            Err(error) => self.counted.failed(error.kind().name()),
        }
        if let (Some(at), Ok((answer, _))) = (self.at, &result)
            && let Some(storing) = &answer.storing
        {
            self.log.lock().storing.push((at, storing.clone()));
        }
        self.change(|record| {
            record.duration_ms = (duration.as_secs_f64() * 1e6).round() / 1e3;
            match result {
                Ok((answer, cached)) => {
                    record.outcome = ok;
                    record.cached = cached;
                    record.fetched_at = Some(answer.fetched_at.clone());
                    record.bytes = Some(answer.bytes.len());
                    record.row_count = answer.rows.count;
                    record.columns.clone_from(&answer.rows.columns);
                    record.head.clone_from(&answer.rows.head);
                    record.tail.clone_from(&answer.rows.tail);
                }
                Err(error) => {
                    record.outcome = error.kind().name();
                    record.error = Some(error.to_string());
                    record.retry_after = error.retry_after().map(|time| time.as_secs_f64());
                }
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut FetchRecord)) {
        let mut records = self.log.lock();
        // A record that was taken meanwhile is that of another cell.
        if let Some(record) = self.at.and_then(|at| records.kept.get_mut(at)) {
            change(record);
        }
    }
}

fn sampled(arguments: &Map<String, Value>) -> Map<String, Value> {
    match sample(&Value::Object(arguments.clone())) {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

/// The current time as RFC 3339.
pub(super) fn now() -> String {
    DateTime::from_timestamp_millis(clock::signed_unix_millis())
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}
