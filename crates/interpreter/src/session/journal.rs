//! The part of a session that remembers its cells.

use super::recorder::Recorder;
use super::recording::RunChain;
use super::timeline::Timeline;
use crate::lineage::Ledger;

/// Numbers, origins and records of a session's cells, and notes for the next one.
#[derive(Debug)]
pub(super) struct Journal {
    /// Its id in origins of artifacts.
    pub(super) id: String,
    /// Origins of the variables of the kernel that is there.
    pub(super) lineage: Ledger,
    /// State from before the next run, for the records of its runs.
    pub(super) chain: RunChain,
    /// Completes these records.
    pub(super) recorder: Recorder,
    /// Events of the session outside of its cells.
    pub(super) timeline: Timeline,
    /// Cells that were run.
    pub(super) cells: u64,
    /// The cell that ran the exit handlers, to their end.
    pub(super) exited_in: u64,
    /// Failures between cells that no cell has reported yet: lost variables and files, inputs that
    /// could not be copied into a new sandbox.
    pub(super) unreported: Vec<String>,
}

impl Journal {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            lineage: Ledger::default(),
            chain: RunChain::default(),
            recorder: Recorder::default(),
            timeline: Timeline::default(),
            cells: 0,
            exited_in: 0,
            unreported: Vec::new(),
        }
    }
}
