//! The part of a session that remembers its cells.

use crate::lineage::Ledger;
use crate::session::journal::chain::RunChain;
use crate::session::journal::recorder::Recorder;
use crate::session::journal::timeline::{Timeline, TimelineEvent};

pub(in crate::session) mod attribution;
pub(in crate::session) mod chain;
pub(in crate::session) mod recorder;
pub(in crate::session) mod recording;
pub mod timeline;

/// Numbers, origins and records of a session's cells, and notes for the next one.
#[derive(Debug)]
pub(in crate::session) struct Journal {
    /// The session's id in origins of artifacts.
    pub(in crate::session) id: String,
    /// Origins of the variables of the kernel that is there.
    pub(in crate::session) lineage: Ledger,
    /// State from before the next run, for the records of its runs.
    pub(in crate::session) chain: RunChain,
    /// Completes these records.
    pub(in crate::session) recorder: Recorder,
    /// Events of the session outside of its cells.
    pub(in crate::session) timeline: Timeline,
    /// Cells that were run.
    pub(in crate::session) cells: u64,
    /// The cell that ran the exit handlers, to their end.
    pub(in crate::session) exited_in: u64,
    /// Failures between cells that no cell has reported yet: lost variables and files, inputs that
    /// could not be copied into a new sandbox.
    pub(in crate::session) unreported: Vec<String>,
}

impl Journal {
    pub(in crate::session) fn new(id: String) -> Self {
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

    /// Adds an event.
    pub(in crate::session) fn note_event(&self, what: TimelineEvent) {
        self.timeline.note(self.cells, what);
    }

    /// Adds the event of a kernel that starts, if there is one.
    pub(in crate::session) fn note_start(&self) {
        if self.timeline.sleeps() {
            self.note_event(TimelineEvent::Resumed);
        }
    }
}
