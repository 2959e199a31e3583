//! A run with those before it in its sandbox.

use cellblock_interpreter::run_record::RunRecord;

use crate::records::{Records, RecordsError, RunRow};

/// Maximum number of runs that are exported or replayed together.
const MOST: usize = 100;

/// A run with those before it in its sandbox, the first of them first.
#[derive(Clone, Debug)]
pub struct Chain {
    /// ID of the key that owns them, or `local`.
    pub owner: String,
    /// The runs; the last is the one in question.
    pub records: Vec<RunRecord>,
    /// Reason that it does not begin with the first run of the sandbox.
    pub gap: Option<String>,
}

impl Chain {
    /// Follows the parents of a run. Those that are too old, or another owner's, are missing.
    pub(crate) async fn of(records: &Records, row: RunRow, since_ms: i64) -> Result<Self, RecordsError> {
        let unreadable = |id: &str| Some(format!("the record of the run {id} is not one of this version"));
        let mut chain = Self {
            owner: row.owner.clone(),
            records: Vec::new(),
            gap: None,
        };
        let mut next = Some(row);
        while let Some(row) = next.take() {
            let Ok(record) = RunRecord::from_json(&row.record) else {
                chain.gap = unreadable(&row.id);
                break;
            };
            let parent = record.parent.clone();
            chain.records.push(record);
            let Some(parent) = parent else { break };
            if chain.records.len() == MOST {
                chain.gap = Some(format!(
                    "it depends on more than {MOST} runs before it, which is the maximum"
                ));
                break;
            }
            next = records.run(&row.owner, &parent, since_ms).await?;
            if next.is_none() {
                chain.gap = Some(format!(
                    "it depends on the run {parent} before it in its session, which is no longer recorded"
                ));
            }
        }
        chain.records.reverse();
        Ok(chain)
    }
}
