//! Runs of all owners, for the operator of a gateway.

use cellblock_interpreter::run_record::{RunRecord, RunSink};
use serde::Serialize;
use std::sync::Arc;

use super::{Chain, RunAnswer};
use crate::options::RunOptions;
use crate::records::{Records, RecordsError, RunRow};
use crate::run_log::RunLog;

/// The runs in a gateway's records.
#[derive(Clone, Debug)]
pub struct RecordedRuns {
    records: Records,
    log: RunLog,
}

/// A run with its owner.
#[derive(Clone, Debug, Serialize)]
pub struct OwnedRun {
    /// ID of the key that owns it, or `local` if it was made without keys.
    pub owner: String,
    /// The run.
    #[serde(flatten)]
    pub run: RunAnswer,
}

impl OwnedRun {
    fn of(row: &RunRow) -> Self {
        Self {
            owner: row.owner.clone(),
            run: RunAnswer::of(row),
        }
    }

    /// Reads the record, if it is one of this version.
    pub fn record(&self) -> Option<RunRecord> {
        serde_json::from_value(self.run.record.clone()).ok()
    }
}

impl RecordedRuns {
    /// The runs of these records.
    pub fn new(records: Records, options: RunOptions) -> Self {
        let log = RunLog::new(records.clone(), options);
        Self { records, log }
    }

    /// Returns the newest runs, the newest first; those of a session if one is given.
    pub async fn newest(&self, session: Option<String>, most: usize) -> Result<Vec<OwnedRun>, RecordsError> {
        let rows = self.records.all_runs(session, most).await?;
        Ok(rows.iter().map(OwnedRun::of).collect())
    }

    /// Returns a run.
    pub async fn get(&self, id: &str) -> Result<Option<OwnedRun>, RecordsError> {
        Ok(self.records.any_run(id).await?.as_ref().map(OwnedRun::of))
    }

    /// Returns a run with those before it in its sandbox.
    pub async fn chain(&self, id: &str) -> Result<Option<Chain>, RecordsError> {
        match self.records.any_run(id).await? {
            Some(row) => Chain::of(&self.records, row, 0).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns what takes records of an owner's runs, if any are kept.
    pub fn sink(&self, owner: &str) -> Option<Arc<dyn RunSink>> {
        self.log.sink(owner)
    }

    /// Waits until the records that were taken are written.
    pub async fn flush(&self) {
        self.log.flush().await;
    }
}
