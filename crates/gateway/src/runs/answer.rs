//! Answers of the API about runs and replays.

use cellblock_interpreter::replay::ReplayReport;
use cellblock_interpreter::run_record::RunRecord;
use serde::Serialize;
use serde_json::Value;

use crate::records::RunRow;

/// A run: `object` is `run`, `created_at` is its start in seconds since 1970, and the rest is its record.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RunAnswer {
    /// `run`.
    pub object: &'static str,
    /// Start in seconds since 1970.
    pub created_at: i64,
    /// The record.
    #[serde(flatten)]
    #[schemars(with = "RunRecord")]
    pub record: Value,
}

/// Result of a replay.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ReplayAnswer {
    /// `run.replay`.
    pub object: &'static str,
    /// The report.
    #[serde(flatten)]
    pub report: ReplayReport,
}

impl RunAnswer {
    pub(crate) fn of(row: &RunRow) -> Self {
        Self {
            object: "run",
            created_at: row.created_ms / 1000,
            record: serde_json::from_str(&row.record).unwrap_or_default(),
        }
    }
}

impl ReplayAnswer {
    pub(super) const fn of(report: ReplayReport) -> Self {
        let object = "run.replay";
        Self { object, report }
    }
}
