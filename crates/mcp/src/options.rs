//! How a server is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::limits::{Limits, MAX_CELL_TIME};
use cellblock_interpreter::toolset::{ToolsetKind, ToolsetTerms, python};

use crate::meter::{Meter, Unmetered};

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Toolsets that it offers, in addition to the tools for sessions and files.
    pub toolsets: Vec<ToolsetKind>,
    /// Tokens of text that one answer may have; a token is taken to be four characters.
    pub tokens: usize,
    /// How long a session lives while nothing is asked of it.
    pub idle: Duration,
    /// Sessions that one owner may have at a time.
    pub sessions_per_owner: usize,
    /// Sessions of all owners.
    pub sessions: usize,
    /// How long a call runs before a client that declared tasks gets one instead of the answer.
    pub task_after: Duration,
    /// How long code runs that does not say how long it needs: that of the interpreter's limits.
    pub cell_time: Duration,
    /// The longest that a call may ask for.
    pub max_cell_time: Duration,
    /// Asked before a session is made and code is run.
    pub meter: Arc<dyn Meter>,
    /// Files of the host that every session finds in `/tmp/data`, read-only.
    pub datasets: Vec<Dataset>,
}

/// A file of the host that sessions see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// What it is called in `/tmp/data`, without its extension.
    pub name: String,
    /// Where it is on the host.
    pub path: PathBuf,
}

impl Options {
    /// What toolsets of this owner's session are granted.
    pub(crate) fn terms(&self, owner: &str) -> ToolsetTerms {
        ToolsetTerms {
            owner: owner.to_owned(),
            timeout: self.cell_time,
            max_timeout: self.max_cell_time,
            datasets: self.datasets.iter().map(|it| it.name.clone()).collect(),
            ..ToolsetTerms::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            toolsets: vec![python::KIND],
            tokens: 8000,
            idle: Duration::from_mins(30),
            sessions_per_owner: 16,
            sessions: 256,
            task_after: Duration::from_secs(5),
            cell_time: Limits::default().cell_time,
            max_cell_time: MAX_CELL_TIME,
            meter: Arc::new(Unmetered),
            datasets: Vec::new(),
        }
    }
}
